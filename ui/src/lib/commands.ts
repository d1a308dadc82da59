//! The app's commands, typed. Rejections are errors of the shape AppError (see errors.ts).

import { Channel, invoke } from "@tauri-apps/api/core";
import { Menu } from "@tauri-apps/api/menu";
import { getCurrentWebview } from "@tauri-apps/api/webview";
import { openUrl } from "@tauri-apps/plugin-opener";
import type {
  BenchEvent,
  BenchRequest,
  BenchTexts,
  Cancelled,
  Chat,
  ChatConfig,
  ChatSummary,
  CompareEvent,
  CompareRequest,
  Comparison,
  DataFolder,
  Deletion,
  Download,
  DownloadPlan,
  Dropped,
  ExportFormat,
  FoundRepo,
  Imported,
  Measurements,
  ModelStatus,
  ModelsView,
  OpenBench,
  Provenance,
  Picked,
  SearchHit,
  Settings,
  ShelfView,
  TokenView,
  TurnEvent,
  TurnOptions,
  Wanted,
} from "../bindings";
import { isExternal } from "./html";
import { acceleratorOf, menus, nameOf, type Command } from "./menus";

const channel = <T>(onMessage: (message: T) => void): Channel<T> => new Channel<T>(onMessage);

export const listChats = (): Promise<ChatSummary[]> => invoke("list_chats");
export const openChat = (chatId: number): Promise<Chat> => invoke("open_chat", { chatId });
export const renameChat = (chatId: number, title: string): Promise<ChatSummary> => invoke("rename_chat", { chatId, title });
/** For 30 days it can be restored. */
export const deleteChat = (chatId: number): Promise<null> => invoke("delete_chat", { chatId });
export const restoreChat = (chatId: number): Promise<ChatSummary> => invoke("restore_chat", { chatId });
/** The deleted chats that can still be restored, the last one first. */
export const listDeleted = (): Promise<ChatSummary[]> => invoke("list_deleted");
/** Removes a deleted chat for good; null is all of them. */
export const purgeChats = (chatId: number | null): Promise<null> => invoke("purge_chats", { chatId });
/** Deletes every chat; each can be restored until it is purged. */
export const deleteAllChats = (): Promise<null> => invoke("delete_all_chats");
export const pinChat = (chatId: number, pinned: boolean): Promise<ChatSummary> => invoke("pin_chat", { chatId, pinned });
export const tagChat = (chatId: number, tags: string[]): Promise<ChatSummary> => invoke("tag_chat", { chatId, tags });
export const duplicateChat = (chatId: number, title: string): Promise<ChatSummary> => invoke("duplicate_chat", { chatId, title });
export const configureChat = (chatId: number, config: ChatConfig): Promise<null> => invoke("configure_chat", { chatId, config });
/** Null is the chat that is not begun yet. */
export const saveDraft = (chatId: number | null, text: string): Promise<null> => invoke("set_draft", { chatId, text });
export const newDraft = (): Promise<string> => invoke("new_draft");
export const searchChats = (query: string): Promise<SearchHit[]> => invoke("search_chats", { query });
/** Shows the branch that the message lies on. */
export const showMessage = (messageId: number): Promise<Chat> => invoke("show_message", { messageId });
/** Deletes it with all that follow it. */
export const deleteMessage = (messageId: number): Promise<Chat> => invoke("delete_message", { messageId });
/** How the answer of a reply came, round by round. */
export const messageOrigin = (messageId: number): Promise<Provenance> => invoke("message_origin", { messageId });
/** Asks for files; none if the person closed the dialog. */
export const attachFiles = (): Promise<Picked> => invoke("attach_files");
/** Tells folders from files, and reads those of them that can go with a message. */
export const sortDrop = (paths: string[]): Promise<Dropped> => invoke("sort_drop", { paths });
/** The bytes of a PDF that was picked, once. */
export const readPdf = async (id: number): Promise<Uint8Array> => new Uint8Array(await invoke<ArrayBuffer>("read_pdf", { id }));
/** Null if they cannot be counted now. */
export const countTokens = (text: string): Promise<number | null> => invoke("count_tokens", { text });
/** Asks where to, and resolves to the file, or to null if the person closed the dialog. Without a chat: all of them. */
export const exportChats = (chatId: number | null, format: ExportFormat, name: string): Promise<string | null> =>
  invoke("export_chats", { chatId, format, name });
export const importChats = (): Promise<Imported | null> => invoke("import_chats");

/** Asks for a reply in a chat, or in a new one for which `config` holds. The stream ends with `done` or `failed`, whatever the promise does. */
export const sendMessage = (
  chatId: number | null,
  text: string,
  options: TurnOptions,
  config: ChatConfig | null,
  onEvent: (event: TurnEvent) => void,
): Promise<null> => invoke("send_message", { chatId, text, options, config, onEvent: channel(onEvent) });

/** Sends another version of one of the person's messages. The stream ends as that of `sendMessage`. */
export const editMessage = (
  messageId: number,
  text: string,
  options: TurnOptions,
  onEvent: (event: TurnEvent) => void,
): Promise<null> => invoke("edit_message", { messageId, text, options, onEvent: channel(onEvent) });

/** Goes on with a reply that broke off. The stream ends as that of `sendMessage`. */
export const continueReply = (messageId: number, options: TurnOptions, onEvent: (event: TurnEvent) => void): Promise<null> =>
  invoke("continue_reply", { messageId, options, onEvent: channel(onEvent) });

/** Writes another version of a reply. The stream ends as that of `sendMessage`. */
export const regenerate = (messageId: number, options: TurnOptions, onEvent: (event: TurnEvent) => void): Promise<null> =>
  invoke("regenerate", { messageId, options, onEvent: channel(onEvent) });

/** Answers a message of the person that no reply follows. The stream ends as that of `sendMessage`. */
export const answerMessage = (messageId: number, options: TurnOptions, onEvent: (event: TurnEvent) => void): Promise<null> =>
  invoke("answer_message", { messageId, options, onEvent: channel(onEvent) });

/** The model stops thinking and answers. */
export const answerNow = (): Promise<null> => invoke("answer_now");
export const stopTurn = (): Promise<null> => invoke("stop_turn");

export const modelStatus = (): Promise<ModelStatus> => invoke("model_status");
/** Calls back at each change of the model's status for as long as the window lives. */
export const watchModel = (onStatus: (status: ModelStatus) => void): Promise<null> =>
  invoke("watch_model", { onStatus: channel(onStatus) });
/** What is here and what can be fetched, by one look at the disk. */
export const listModels = (): Promise<ModelsView> => invoke("list_models");
/** Loads `builtin` or a folder; resolves when the model is ready. */
export const loadModel = (path: string, drafterPath: string | null): Promise<ModelStatus> =>
  invoke("load_model", { path, drafterPath });
export const unloadModel = (): Promise<null> => invoke("unload_model");

export const addFolder = (path: string): Promise<ShelfView> => invoke("add_folder", { path });
export const removeFolder = (path: string): Promise<ShelfView> => invoke("remove_folder", { path });
/** The system's dialog; null if the person closed it. */
export const pickFolder = (): Promise<string | null> => invoke("pick_folder");
export const weighModel = (path: string): Promise<Deletion> => invoke("weigh_model", { path });
/** Resolves to the bytes that came free. */
export const deleteModel = (path: string, foreign: boolean): Promise<number> => invoke("delete_model", { path, foreign });

export const searchHub = (query: string): Promise<FoundRepo[]> => invoke("search_hub", { query });
export const planDownload = (wanted: Wanted): Promise<DownloadPlan> => invoke("plan_download", { wanted });
/** Nobody looks at the plan any more that is being made. */
export const cancelPlan = (): Promise<null> => invoke("cancel_plan");
/** Starts what a plan showed, or what is wanted without one. */
export const startDownload = (wanted: Wanted, planId: string | null, thenChat: boolean): Promise<string> =>
  invoke("start_download", { wanted, planId, thenChat });
export const pauseDownload = (id: string): Promise<null> => invoke("pause_download", { id });
export const resumeDownload = (id: string): Promise<null> => invoke("resume_download", { id });
export const cancelDownload = (id: string): Promise<Cancelled> => invoke("cancel_download", { id });
/** Calls back with all downloads at each change for as long as the window lives. */
export const watchDownloads = (onChange: (all: Download[]) => void): Promise<null> =>
  invoke("watch_downloads", { onChange: channel(onChange) });

export const tokenStatus = (): Promise<TokenView> => invoke("token_status");
export const setToken = (token: string): Promise<TokenView> => invoke("set_token", { token });
export const clearToken = (): Promise<TokenView> => invoke("clear_token");

/** Files and folders dragged over the window: whether one is over it, then what was dropped. */
export async function followDrops(onDrop: (event: { over: boolean } | { paths: string[] }) => void): Promise<void> {
  await getCurrentWebview().onDragDropEvent(({ payload }) => {
    if (payload.type === "drop") onDrop({ paths: payload.paths });
    else onDrop({ over: payload.type !== "leave" });
  });
}

export const getSettings = (): Promise<Settings> => invoke("get_settings");
export const updateSettings = (settings: Settings): Promise<Settings> => invoke("update_settings", { settings });

/** Runs a request with speculation off and on. The stream ends with `done` or `failed`; `stopTurn` ends it early. */
export const compare = (request: CompareRequest, onEvent: (event: CompareEvent) => void): Promise<null> =>
  invoke("compare", { request, onEvent: channel(onEvent) });
/** Runs the prompt set, as `compare`. */
export const bench = (request: BenchRequest, onEvent: (event: BenchEvent) => void): Promise<null> =>
  invoke("bench", { request, onEvent: channel(onEvent) });
export const listMeasurements = (): Promise<Measurements> => invoke("list_measurements");
export const openComparison = (id: number): Promise<Comparison> => invoke("open_comparison", { id });
export const openBench = (id: number): Promise<OpenBench> => invoke("open_bench", { id });
export const benchTexts = (open: OpenBench): Promise<BenchTexts> => invoke("bench_texts", { open });
export const removeMeasurement = (id: number): Promise<null> => invoke("remove_measurement", { id });

/** Puts the window's commands into the system's menu bar. */
export async function setMenus(onCommand: (command: Command) => void): Promise<void> {
  const items = menus().map(({ title, parts }) => ({
    text: title,
    items: parts.map((part) => {
      if (part === "line") return { item: "Separator" as const };
      if ("own" in part) return { item: part.own === "About" ? { About: null } : part.own };
      const { command } = part;
      return { id: command, text: nameOf(command), accelerator: acceleratorOf(command), action: () => onCommand(command) };
    }),
  }));
  await (await Menu.new({ items })).setAsAppMenu();
}

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

export const dataFolder = (): Promise<DataFolder> => invoke("data_folder");
/** Shows it in the system's own file manager. */
export const openDataFolder = (): Promise<null> => invoke("open_data_folder");
