//! The day, for what is sorted by it.

import { untilTomorrow } from "../lib/days";

let now = $state(Date.now());
let timer: ReturnType<typeof setTimeout> | undefined;

/** A moment of today. It changes when the day does. */
export const today = (): number => now;

/** Follows the days until the answer is called. A computer that slept through midnight notices when it is looked at. */
export function followDays(): () => void {
  const look = (): void => {
    now = Date.now();
    clearTimeout(timer);
    timer = setTimeout(look, untilTomorrow(now) + 1000);
  };
  look();
  window.addEventListener("focus", look);
  document.addEventListener("visibilitychange", look);
  return () => {
    clearTimeout(timer);
    window.removeEventListener("focus", look);
    document.removeEventListener("visibilitychange", look);
  };
}
