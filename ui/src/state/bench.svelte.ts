import * as commands from "../lib/commands";
import { winner } from "../lib/compare";
import { apply, initial } from "./bench";
import { measurer } from "./measuring.svelte";
import { Store } from "./store.svelte";
import { openSheet, report } from "./view.svelte";

export const bench = new Store(apply, initial);

const measuring = measurer(bench, (all) => all.benches, (done) => winner(done.report));

export const stopBench = measuring.stop;
export const removeBench = measuring.remove;
export const startBench = (): Promise<void> => measuring.start((on) => commands.bench(bench.current.request, on));

export function openBench(): void {
  openSheet("bench");
  void measuring.list();
}

export async function showBench(id: number): Promise<void> {
  try {
    const { report: shown, regressions } = await commands.openBench(id);
    bench.dispatch({ type: "shown", id, report: shown, regressions });
  } catch (error) {
    report(error);
  }
}
