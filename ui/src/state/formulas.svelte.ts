//! Whether formulas can be drawn: what draws them is loaded when the first one is seen.

import { isKatexHere, loadKatex } from "../lib/katex";

let ready = $state(isKatexHere());

/** Whether formulas can be drawn; whoever asks is asked again once they can. If loading fails, their sources stay. */
export function formulasReady(): boolean {
  if (!ready) {
    loadKatex().then(
      () => (ready = true),
      () => {},
    );
  }
  return ready;
}
