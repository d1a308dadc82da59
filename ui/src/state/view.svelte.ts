import { toAppError } from "../lib/errors";
import { Store } from "./store.svelte";
import { apply, initial, type ModelTab, type Sheet, type Undo } from "./view";

export const view = new Store(apply, initial);

export const openSheet = (sheet: Sheet): void => view.dispatch({ type: "sheet", sheet });
export const showModels = (tab: ModelTab): void => view.dispatch({ type: "models", tab });
export const closeSheet = (): void => view.dispatch({ type: "sheet", sheet: null });
export const toggleInspector = (): void => view.dispatch({ type: "inspector", open: !view.current.inspector });
export const inspect = (messageId: number): void => view.dispatch({ type: "inspected", messageId });
export const announce = (text: string): void => view.dispatch({ type: "announced", text });

/** Shows a failure that belongs to no reply. */
export const report = (thrown: unknown): void => view.dispatch({ type: "notice", error: toAppError(thrown) });
export const dismiss = (): void => view.dispatch({ type: "notice", error: null });

export const edit = (messageId: number | null): void => view.dispatch({ type: "editing", messageId });
export const askDelete = (messageId: number | null): void => view.dispatch({ type: "confirming", messageId });
/** Brings a message into sight, with the words in it that were searched for. */
export const seek = (messageId: number, query = ""): void => view.dispatch({ type: "sought", messageId, query });
/** Asks with which settings another version of a reply is to be written. */
export const askAgain = (messageId: number | null = null): void => view.dispatch({ type: "again", messageId });
export const showFind = (on: boolean): void => view.dispatch({ type: "finding", on });

/** Says what was done, with the way back if there is one. */
export const toast = (text: string, undo: Undo | null = null): void => view.dispatch({ type: "toast", text, undo });
export const endToast = (): void => view.dispatch({ type: "toastOver" });
