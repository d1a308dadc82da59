import type { AppError, Measurement, Measurements } from "../bindings";
import * as commands from "../lib/commands";
import { toAppError } from "../lib/errors";
import type { Measuring, MeasuringEvent, Running } from "./measuring";
import { turn } from "./turn.svelte";
import { announce, report } from "./view.svelte";

/** A promise can reject a moment before its stream's last events arrive; those know more. */
const GRACE_MS = 2000;
let turns = 0;

interface Measurer<E> {
  start: (run: (on: (event: E) => void) => Promise<unknown>) => Promise<void>;
  stop: () => Promise<void>;
  list: () => Promise<void>;
  /** Removes one of the earlier ones. */
  remove: (id: number) => Promise<void>;
}

/** Starts, stops and lists one kind of measurement; `line` is what its last event is read out as. */
export function measurer<E extends { type: string }>(
  store: { readonly current: Measuring<Running>; dispatch: (event: MeasuringEvent<E>) => void },
  pick: (all: Measurements) => Measurement[],
  line: (done: Extract<E, { type: "done" }>) => string,
): Measurer<E> {
  async function list(): Promise<void> {
    try {
      store.dispatch({ type: "listed", history: pick(await commands.listMeasurements()) });
    } catch (error) {
      report(error);
    }
  }

  const isDone = (event: E): event is Extract<E, { type: "done" }> => event.type === "done";
  const isFailed = (event: E): event is E & { error: AppError } => event.type === "failed";
  function follow(event: E): void {
    if (isDone(event)) {
      announce(line(event));
      void list();
    } else if (isFailed(event)) announce(event.error.message);
  }

  async function start(run: (on: (event: E) => void) => Promise<unknown>): Promise<void> {
    if (store.current.running || turn.current.live) return;
    turns += 1;
    const mine = turns;
    store.dispatch({ type: "asked", turn: mine });
    try {
      await run((event) => {
        store.dispatch({ type: "streamed", turn: mine, event });
        follow(event);
      });
    } catch (thrown) {
      const error = toAppError(thrown);
      setTimeout(() => store.dispatch({ type: "lost", turn: mine, error }), GRACE_MS);
    }
  }

  async function stop(): Promise<void> {
    if (!store.current.running || store.current.running.stopping) return;
    store.dispatch({ type: "stopping", on: true });
    try {
      await commands.stopTurn();
    } catch (error) {
      store.dispatch({ type: "stopping", on: false });
      report(error);
    }
  }

  async function remove(id: number): Promise<void> {
    try {
      await commands.removeMeasurement(id);
    } catch (error) {
      report(error);
    }
    await list();
  }

  return { start, stop, list, remove };
}
