//! The keys of the app: one table that both the handler and the shortcut sheet read.

export type Action =
  | "newChat"
  | "filter"
  | "sidebar"
  | "inspector"
  | "settings"
  | "shortcuts"
  | "regenerate"
  | "models"
  | "compare";

/** `key` as `KeyboardEvent.key` in lower case; all of them with Mod (Command on macOS, Control elsewhere). */
export const SHORTCUTS: { action: Action; key: string }[] = [
  { action: "newChat", key: "n" },
  { action: "filter", key: "k" },
  { action: "regenerate", key: "r" },
  { action: "compare", key: "d" },
  { action: "sidebar", key: "b" },
  { action: "inspector", key: "i" },
  { action: "models", key: "m" },
  { action: "settings", key: "," },
  { action: "shortcuts", key: "/" },
];

type Press = Pick<KeyboardEvent, "key" | "metaKey" | "ctrlKey" | "altKey" | "shiftKey">;

/** The action a key press asks for. Shift is let through for `/`, which needs it on many layouts. */
export function actionOf(event: Press, mac: boolean): Action | null {
  const mod = mac ? event.metaKey && !event.ctrlKey : event.ctrlKey && !event.metaKey;
  if (!mod || event.altKey || (event.shiftKey && event.key !== "/")) return null;
  return SHORTCUTS.find((s) => s.key === event.key.toLowerCase())?.action ?? null;
}

/**
 * Whether a key press belongs to an input method. WebKit ends a composition before the Enter that
 * confirmed it arrives, and marks that Enter only by the key code 229.
 */
export const isComposing = (event: Pick<KeyboardEvent, "isComposing" | "keyCode">): boolean =>
  event.isComposing || event.keyCode === 229;

export const isMac = (): boolean => /Mac/.test(navigator.platform);

/** `⌘N` or `Ctrl N`. */
export const label = (key: string, mac: boolean): string => (mac ? `⌘${key.toUpperCase()}` : `Ctrl ${key.toUpperCase()}`);
