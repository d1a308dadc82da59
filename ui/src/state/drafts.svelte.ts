//! What is written but not sent, by chat: a draft survives a look at another chat.

const drafts = $state<Record<string, string>>({});

const key = (chatId: number | null): string => (chatId === null ? "new" : String(chatId));

export const draftOf = (chatId: number | null): string => drafts[key(chatId)] ?? "";

export function setDraft(chatId: number | null, text: string): void {
  drafts[key(chatId)] = text;
}

/** Puts a text that could not be sent back before whatever was written since. */
export function giveBack(chatId: number | null, text: string): void {
  const since = draftOf(chatId);
  setDraft(chatId, since ? `${text}\n${since}` : text);
}
