//! The menus of the system's menu bar: what is in them. Their keys are those of `keys.ts`, their words those of the window.

import { SHORTCUTS, type Action } from "./keys";
import { strings } from "./strings";

/** What can be asked for by menu, by key or in the switcher. */
export type Command =
  | Action
  | "importChats"
  | "exportChat"
  | "exportAll"
  | "deleted"
  | "rename"
  | "tags"
  | "pin"
  | "duplicate"
  | "remove"
  | "again"
  | "answer"
  | "stop"
  | "bench"
  | "unload";

/** What the system does by itself. */
type Own =
  | "Undo" | "Redo" | "Cut" | "Copy" | "Paste" | "SelectAll"
  | "About" | "Services" | "Hide" | "HideOthers" | "ShowAll" | "Quit"
  | "Minimize" | "Maximize" | "Fullscreen" | "CloseWindow";

type Part = { command: Command } | { own: Own } | "line";

export interface MenuPart {
  title: string;
  parts: Part[];
}

const of = (...commands: Command[]): Part[] => commands.map((command) => ({ command }));
const own = (...items: Own[]): Part[] => items.map((item) => ({ own: item }));

/** In the order of macOS; the first is the app's own menu. */
export const menus = (): MenuPart[] => {
  const { menus: s } = strings;
  return [
    {
      title: strings.app,
      parts: [...own("About"), "line", ...of("settings"), "line", ...own("Services"), "line", ...own("Hide", "HideOthers", "ShowAll"), "line", ...own("Quit")],
    },
    { title: s.file, parts: [...of("newChat", "switcher"), "line", ...of("importChats", "exportChat", "exportAll"), "line", ...of("deleted"), "line", ...own("CloseWindow")] },
    {
      title: s.edit,
      parts: [...own("Undo", "Redo"), "line", ...own("Cut", "Copy", "Paste", "SelectAll"), "line", ...of("find", "filter")],
    },
    { title: s.view, parts: [...of("sidebar", "inspector"), "line", ...own("Fullscreen")] },
    {
      title: s.chat,
      parts: [
        ...of("edit", "answer", "regenerate", "again", "stop"),
        "line",
        ...of("compare", "chat"),
        "line",
        ...of("rename", "tags", "pin", "duplicate", "remove"),
        "line",
        ...of("models", "unload", "bench"),
      ],
    },
    { title: s.window, parts: own("Minimize", "Maximize") },
    { title: s.help, parts: of("shortcuts") },
  ];
};

/** The words of a command. */
export const nameOf = (command: Command): string => strings.commands[command as keyof typeof strings.commands] ?? strings.shortcuts.actions[command as Action];

/** The keys of a command as Tauri writes them; none for those without. */
export function acceleratorOf(command: Command): string | undefined {
  const shortcut = SHORTCUTS.find((s) => s.action === command);
  return shortcut && `CmdOrCtrl+${shortcut.shift ? "Shift+" : ""}${shortcut.key.toUpperCase()}`;
}

/** Every command that is in a menu, in their order. */
export const commandsOf = (all: MenuPart[]): Command[] =>
  all.flatMap(({ parts }) => parts.flatMap((part) => (typeof part === "object" && "command" in part ? [part.command] : [])));
