//! The keys of the app: one table that both the handler and the shortcut sheet read.

export type Action =
  | "newChat"
  | "switcher"
  | "find"
  | "filter"
  | "edit"
  | "chat"
  | "sidebar"
  | "inspector"
  | "settings"
  | "shortcuts"
  | "regenerate"
  | "models"
  | "compare";

export interface Shortcut {
  action: Action;
  /** As `KeyboardEvent.key` in lower case. */
  key: string;
  shift?: true;
}

/** All of them with Mod: Command on macOS, Control elsewhere. */
export const SHORTCUTS: Shortcut[] = [
  { action: "newChat", key: "n" },
  { action: "switcher", key: "k" },
  { action: "find", key: "f" },
  { action: "filter", key: "f", shift: true },
  { action: "edit", key: "e" },
  { action: "regenerate", key: "r" },
  { action: "compare", key: "d" },
  { action: "chat", key: "." },
  { action: "sidebar", key: "b" },
  { action: "inspector", key: "i" },
  { action: "models", key: "l" },
  { action: "settings", key: "," },
  { action: "shortcuts", key: "/" },
];

type Press = Pick<KeyboardEvent, "key" | "metaKey" | "ctrlKey" | "altKey" | "shiftKey">;

/** The action a key press asks for. Shift is let through for `/`, which needs it on many layouts. */
export function actionOf(event: Press, mac: boolean): Action | null {
  const mod = mac ? event.metaKey && !event.ctrlKey : event.ctrlKey && !event.metaKey;
  if (!mod || event.altKey) return null;
  const key = event.key.toLowerCase();
  const found = SHORTCUTS.find((s) => s.key === key && (key === "/" || event.shiftKey === (s.shift ?? false)));
  return found?.action ?? null;
}

/**
 * Whether a key press belongs to an input method. WebKit ends a composition before the Enter that
 * confirmed it arrives, and marks that Enter only by the key code 229.
 */
export const isComposing = (event: Pick<KeyboardEvent, "isComposing" | "keyCode">): boolean =>
  event.isComposing || event.keyCode === 229;

/** Whether an Enter sends what is written. With Mod it always does; alone only where the person wants it so. */
export function sends(event: Press, enterSends: boolean, mac: boolean): boolean {
  if (event.key !== "Enter" || event.shiftKey || event.altKey) return false;
  return (mac ? event.metaKey : event.ctrlKey) || (enterSends && !event.metaKey && !event.ctrlKey);
}

export const isMac = (): boolean => /Mac/.test(navigator.platform);

/** `⌘N` or `Ctrl N`. */
export const label = (key: string, mac: boolean, shift = false): string =>
  mac ? `${shift ? "⇧" : ""}⌘${nameOf(key)}` : `Ctrl ${shift ? "Shift " : ""}${nameOf(key)}`;

const nameOf = (key: string): string => (key.length === 1 ? key.toUpperCase() : key);

/** The keys of an action. */
export function labelOf(action: Action, mac: boolean): string {
  const shortcut = SHORTCUTS.find((s) => s.action === action);
  return shortcut ? label(shortcut.key, mac, shortcut.shift) : "";
}
