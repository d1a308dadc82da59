import type { AppError, ModelStatus } from "../bindings";
import * as commands from "../lib/commands";
import { asOne, toAppError } from "../lib/errors";
import { strings } from "../lib/strings";
import { apply, initial } from "./model";
import { Store } from "./store.svelte";
import { announce, report } from "./view.svelte";

export const model = new Store(apply, initial);

/** Follows the model's status from now on. */
export async function followModel(): Promise<void> {
  let told = false;
  const follow = (status: ModelStatus): void => {
    told = true;
    take(status);
  };
  commands.watchModel(follow).catch(report);
  const status = await commands.modelStatus();
  // The question may be answered after a change was told: the change is newer.
  if (!told) take(status);
}

function take(status: ModelStatus): void {
  const before = model.current.status.state;
  model.dispatch({ type: "status", status });
  if (status.state === before || status.state === "none") return;
  const say = { loading: strings.announce.loading, ready: strings.announce.ready, failed: strings.announce.loadFailed };
  announce(say[status.state](status.model.name));
}

/** What is here and what can be fetched, by one look at the disk. */
export async function listModels(): Promise<void> {
  try {
    model.dispatch({ type: "listed", models: await commands.listModels() });
  } catch (error) {
    model.dispatch({ type: "listFailed", wish: "list", error: toAppError(error) });
  }
}

/** Loads a model; the app itself remembers it for the next start. */
export async function loadModel(path: string, drafterPath: string | null): Promise<void> {
  model.dispatch({ type: "requested", path });
  try {
    model.dispatch({ type: "loaded", status: await commands.loadModel(path, drafterPath) });
    void listModels();
  } catch (error) {
    model.dispatch({ type: "refused", path, error: toAppError(error) });
  }
}

export async function unloadModel(): Promise<void> {
  await commands.unloadModel().catch(report);
}

/** Has a folder looked through from now on. Resolves to whether it holds a model. */
export async function addFolder(path: string): Promise<boolean> {
  try {
    model.dispatch({ type: "shelved", shelf: await commands.addFolder(path) });
    return true;
  } catch (error) {
    model.dispatch({ type: "listFailed", wish: "addFolder", error: toAppError(error) });
    return false;
  }
}

export async function removeFolder(path: string): Promise<void> {
  try {
    model.dispatch({ type: "shelved", shelf: await commands.removeFolder(path) });
  } catch (error) {
    model.dispatch({ type: "listFailed", wish: "removeFolder", error: toAppError(error) });
  }
}

/** Has several folders looked through from now on; what is wrong with any of them is told. */
export async function addFolders(paths: readonly string[]): Promise<void> {
  const failed: AppError[] = [];
  for (const path of paths) {
    try {
      model.dispatch({ type: "shelved", shelf: await commands.addFolder(path) });
    } catch (error) {
      failed.push(toAppError(error));
    }
  }
  const error = asOne(failed, strings.model.severalFolders);
  if (error) model.dispatch({ type: "listFailed", wish: "addFolder", error });
}

/** Asks the person for a folder and adds it. */
export async function pickAndAddFolder(): Promise<void> {
  const path = await commands.pickFolder().catch(report);
  if (path) await addFolder(path);
}

/** Deletes a checkpoint; resolves to the bytes that came free, or null if it could not. */
export async function deleteModel(path: string, foreign: boolean): Promise<number | null> {
  try {
    const freed = await commands.deleteModel(path, foreign);
    await listModels();
    return freed;
  } catch (error) {
    model.dispatch({ type: "listFailed", wish: "delete", error: toAppError(error) });
    return null;
  }
}
