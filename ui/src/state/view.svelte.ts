import { toAppError } from "../lib/errors";
import { Store } from "./store.svelte";
import { apply, initial, type ModelTab, type Sheet } from "./view";

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
