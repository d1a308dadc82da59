//! The library of chats for design work in a browser: branches, search, what is deleted and taken back.

import type { Chat, ChatSummary, Message, SearchHit } from "../bindings";

export const summary = (id: number, title: string, updatedAt: number, patch: Partial<ChatSummary> = {}): ChatSummary => ({
  id, title, createdAt: updatedAt, updatedAt, pinned: false, tags: [], ...patch,
});

export const begin = (summary: ChatSummary): Chat => ({ summary, messages: [], config: { systemPrompt: "", options: null }, draft: "" });

/** What follows each version that is not shown, itself first. */
const tails = new Map<number, Message[]>();
const deleted: Chat[] = [];
export const countDeleted = (): number => deleted.length;
let newDraft = "";

/** Another version comes in place of the message at `at` and all that follows it. */
export function branch(chat: Chat, at: number, version: Message): Message {
  const old = chat.messages[at]!;
  tails.set(old.id, chat.messages.slice(at));
  const made = { ...version, versions: [...old.versions, version.id] };
  relabel(chat, made.versions);
  chat.messages = [...chat.messages.slice(0, at), made];
  return made;
}

function relabel(chat: Chat, versions: number[]): void {
  for (const list of [chat.messages, ...tails.values()]) for (const m of list) if (versions.includes(m.id)) m.versions = versions;
}

function show(chats: Chat[], id: number): Chat {
  const chat = chats.find((c) => c.messages.some((m) => m.versions.includes(id)))!;
  const at = chat.messages.findIndex((m) => m.versions.includes(id));
  if (chat.messages[at]!.id !== id) {
    tails.set(chat.messages[at]!.id, chat.messages.slice(at));
    chat.messages = [...chat.messages.slice(0, at), ...(tails.get(id) ?? [])];
  }
  return structuredClone(chat);
}

function search(chats: Chat[], query: string): SearchHit[] {
  const word = query.trim().toLowerCase();
  return chats.flatMap(({ summary: { title }, messages }) =>
    messages.filter((m) => word.length > 1 && m.content.toLowerCase().includes(word)).slice(0, 3).map((m): SearchHit => {
      const at = m.content.toLowerCase().indexOf(word);
      const cut = (from: number, to: number): string => m.content.slice(Math.max(0, from), to).replaceAll("\n", " ");
      return {
        chatId: m.chatId, title, messageId: m.id, role: m.role, createdAt: m.createdAt,
        pieces: [{ text: cut(at - 30, at), hit: false }, { text: cut(at, at + word.length), hit: true }, { text: cut(at + word.length, at + 80), hit: false }],
      };
    }),
  );
}

/** The answer to a command of the library; undefined if it is none. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any
export function answer(chats: Chat[], command: string, args: Record<string, any>, freshId: () => number): unknown {
  const chat = chats.find((c) => c.summary.id === args.chatId);
  const change = (patch: Partial<ChatSummary>): ChatSummary => (chat!.summary = { ...chat!.summary, ...patch });
  switch (command) {
    case "delete_chat":
      deleted.push(...chats.splice(chats.indexOf(chat!), 1));
      return null;
    case "restore_chat": {
      const back = deleted.find((c) => c.summary.id === args.chatId)!;
      deleted.splice(deleted.indexOf(back), 1);
      chats.push(back);
      return back.summary;
    }
    case "list_deleted":
      return deleted.map((c) => c.summary);
    case "purge_chats":
      deleted.splice(0, deleted.length, ...(args.chatId === null ? [] : deleted.filter((c) => c.summary.id !== args.chatId)));
      return null;
    case "delete_all_chats":
      deleted.push(...chats.splice(0));
      return null;
    case "rename_chat":
      return change({ title: args.title });
    case "pin_chat":
      return change({ pinned: args.pinned });
    case "tag_chat":
      return change({ tags: args.tags });
    case "duplicate_chat": {
      const id = freshId();
      const messages = chat!.messages.map((m) => { const own = freshId(); return { ...m, id: own, chatId: id, versions: [own] }; });
      chats.push({ ...structuredClone(chat!), summary: summary(id, args.title, Date.now()), messages });
      return chats.at(-1)!.summary;
    }
    case "configure_chat":
      chat!.config = args.config;
      return null;
    case "set_draft":
      if (chat) chat.draft = args.text;
      else newDraft = args.text;
      return null;
    case "new_draft":
      return newDraft;
    case "search_chats":
      return search(chats, args.query);
    case "show_message":
      return show(chats, args.messageId);
    case "delete_message": {
      const of = chats.find((c) => c.messages.some((m) => m.id === args.messageId))!;
      of.messages = of.messages.slice(0, of.messages.findIndex((m) => m.id === args.messageId));
      return structuredClone(of);
    }
    case "message_origin":
      return {
        rounds: Array.from({ length: 200 }, (_, n) => {
          const pieces = Array.from({ length: 1 + (n % 3) }, (_, k) => 2 + ((n + k) % 4));
          return { length: pieces.reduce((a, b) => a + b, 0), tokens: pieces.length, drafted: 2, accepted: n % 3, pieces, thinking: [], rejected: n % 3 < 2 ? [" the", " a", "\n"][n % 4 % 3]! : null };
        }),
        pace: Array.from({ length: 120 }, (_, n) => ({ rounds: 2, tokens: 5 + Math.round(Math.sin(n / 9)), ms: 96 + (n % 7) * 4 })),
      };
    case "attach_files":
      return { files: [{ name: "notes.md", text: "# Notes\n\nA stack gives back last what it took first.\n", tokens: 14 }], pdfs: [], refused: [] };
    case "sort_drop":
      return { folders: args.paths.filter((path: string) => !/\.\w+$/.test(path)), files: { files: args.paths.filter((path: string) => /\.\w+$/.test(path)).map((path: string) => ({ name: path.split("/").at(-1)!, text: "Dropped.\n", tokens: 3 })), pdfs: [], refused: [] } };
    case "export_chats":
      return `/home/you/${args.name}.${args.format}`;
    case "import_chats":
      return { chats: [], already: 2, leftOut: ["“Odd”: it has no messages."] };
    default:
      return undefined;
  }
}
