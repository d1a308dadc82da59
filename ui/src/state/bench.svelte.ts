import type { BenchEvent } from "../bindings";
import * as commands from "../lib/commands";
import { winner } from "../lib/compare";
import { toAppError } from "../lib/errors";
import { apply, initial } from "./bench";
import { Store } from "./store.svelte";
import { turn } from "./turn.svelte";
import { announce, openSheet, report } from "./view.svelte";

export const bench = new Store(apply, initial);

const GRACE_MS = 2000;
let turns = 0;

export function openBench(): void {
  openSheet("bench");
  void listBenches();
}

export async function startBench(): Promise<void> {
  if (bench.current.running || turn.current.live) return;
  turns += 1;
  const mine = turns;
  bench.dispatch({ type: "asked", turn: mine });
  try {
    await commands.bench(bench.current.request, (event) => {
      bench.dispatch({ type: "streamed", turn: mine, event });
      follow(event);
    });
  } catch (thrown) {
    const error = toAppError(thrown);
    setTimeout(() => bench.dispatch({ type: "lost", turn: mine, error }), GRACE_MS);
  }
}

function follow(event: BenchEvent): void {
  if (event.type === "done") {
    announce(winner(event.report.winner));
    void listBenches();
  } else if (event.type === "failed") announce(event.error.message);
}

export async function stopBench(): Promise<void> {
  if (!bench.current.running || bench.current.running.stopping) return;
  bench.dispatch({ type: "stopping", on: true });
  try {
    await commands.stopTurn();
  } catch (error) {
    bench.dispatch({ type: "stopping", on: false });
    report(error);
  }
}

export async function showBench(id: number): Promise<void> {
  try {
    const { report: shown, regressions } = await commands.openBench(id);
    bench.dispatch({ type: "shown", id, report: shown, regressions });
  } catch (error) {
    report(error);
  }
}

async function listBenches(): Promise<void> {
  try {
    bench.dispatch({ type: "listed", history: (await commands.listMeasurements()).benches });
  } catch (error) {
    report(error);
  }
}
