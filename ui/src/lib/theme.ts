const dark = window.matchMedia("(prefers-color-scheme: dark)");

/** Follows the chosen theme, and with `system` the system's, until the returned function is called. */
export function followTheme(theme: string): () => void {
  const paint = (): void => {
    const isDark = theme === "dark" || (theme !== "light" && dark.matches);
    document.documentElement.dataset.theme = isDark ? "dark" : "light";
  };
  paint();
  dark.addEventListener("change", paint);
  return () => dark.removeEventListener("change", paint);
}
