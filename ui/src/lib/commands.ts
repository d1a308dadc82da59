//! The app's commands, typed. Rejections are errors of the shape AppError (see errors.ts).

import { Channel, invoke } from "@tauri-apps/api/core";
import { openUrl } from "@tauri-apps/plugin-opener";
import type { Chat, ChatSummary, LocalModel, ModelStatus, Settings, TurnEvent, TurnOptions } from "../bindings";
import { isExternal } from "./html";

const channel = <T>(onMessage: (message: T) => void): Channel<T> => new Channel<T>(onMessage);

export const listChats = (): Promise<ChatSummary[]> => invoke("list_chats");
export const openChat = (chatId: number): Promise<Chat> => invoke("open_chat", { chatId });
export const renameChat = (chatId: number, title: string): Promise<ChatSummary> => invoke("rename_chat", { chatId, title });
export const deleteChat = (chatId: number): Promise<null> => invoke("delete_chat", { chatId });

/** Asks for a reply in a chat, or in a new one. The stream ends with `done` or `failed`, whatever the promise does. */
export const sendMessage = (
  chatId: number | null,
  text: string,
  options: TurnOptions,
  onEvent: (event: TurnEvent) => void,
): Promise<null> => invoke("send_message", { chatId, text, options, onEvent: channel(onEvent) });

/** Writes the last reply of a chat again, in its place. The stream ends as that of `sendMessage`. */
export const regenerate = (messageId: number, options: TurnOptions, onEvent: (event: TurnEvent) => void): Promise<null> =>
  invoke("regenerate", { messageId, options, onEvent: channel(onEvent) });

export const stopTurn = (): Promise<null> => invoke("stop_turn");

export const modelStatus = (): Promise<ModelStatus> => invoke("model_status");
/** Calls back at each change of the model's status for as long as the window lives. */
export const watchModel = (onStatus: (status: ModelStatus) => void): Promise<null> =>
  invoke("watch_model", { onStatus: channel(onStatus) });
export const listModels = (): Promise<LocalModel[]> => invoke("list_models");
/** Loads `builtin` or a folder; resolves when the model is ready. */
export const loadModel = (path: string, drafterPath: string | null): Promise<ModelStatus> =>
  invoke("load_model", { path, drafterPath });
export const unloadModel = (): Promise<null> => invoke("unload_model");

export const getSettings = (): Promise<Settings> => invoke("get_settings");
export const updateSettings = (settings: Settings): Promise<Settings> => invoke("update_settings", { settings });

/** Opens a web or mail address outside the app; any other is ignored. */
export async function openLink(href: string): Promise<void> {
  if (isExternal(href)) await openUrl(href);
}

/** Puts text on the clipboard; false if the webview would not. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Outside a secure context, or without focus, only the old way works.
    const area = document.createElement("textarea");
    area.value = text;
    area.style.cssText = "position:fixed;opacity:0";
    document.body.append(area);
    area.select();
    const ok = document.execCommand("copy");
    area.remove();
    return ok;
  }
}
