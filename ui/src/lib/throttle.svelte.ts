/**
 * The latest of a value that changes too fast to be read: at most one change per `everyMs`, the last one always
 * shown. `calm` lets changes through at once. Call while a component is set up.
 */
export function throttled<T>(value: () => T, calm: () => boolean, everyMs: number): { readonly current: T } {
  let shown = $state.raw(value());
  let next = 0;
  $effect(() => {
    const latest = value();
    const wait = calm() ? 0 : Math.max(0, next - performance.now());
    const show = (): void => {
      shown = latest;
      next = performance.now() + everyMs;
    };
    if (wait === 0) return show();
    const timer = setTimeout(show, wait);
    return () => clearTimeout(timer);
  });
  return {
    get current() {
      return shown;
    },
  };
}
