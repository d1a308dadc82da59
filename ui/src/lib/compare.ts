//! What measurements say, in words. A winner is named only where the app called one.

import type { Comparison, Difference, Measurement, Ratio, Run, SpeculationChoice, Spread, Winner } from "../bindings";
import { count, plural } from "./format";
import { strings } from "./strings";

const s = strings.compare;

/** `1.62` of a ratio; slower ones the other way round. */
export const times = (ratio: number): string => (ratio < 1 ? 1 / ratio : ratio).toFixed(2);

export type Tone = "good" | "bad" | "plain";

/** The largest line of a comparison. */
export function verdict({ agreement, on, speedup }: Comparison): { line: string; tone: Tone } {
  if (agreement.verdict === "unknown") return { line: s.unknown, tone: "plain" };
  const speed = on.speculating ? speedOf(speedup) : s.notRun(on.reason ?? s.noReason);
  if (agreement.verdict === "identical") return { line: `${s.identical(plural(agreement.tokens, "token"))} ${speed}`, tone: "good" };
  const { side, position } = agreement.difference;
  return { line: `${side === "off" ? s.unsteady(count(position + 1)) : s.different(count(position + 1))} ${speed}`, tone: "bad" };
}

/** Which operation made the difference, or how far it was looked for; nothing to say in fast mode where none is known. */
export function causeOf({ side, suspects, recheck }: Difference, exactness: string): string | null {
  const c = s.cause;
  if (side === "off") return c.plain;
  const ops = suspects.join("; ");
  if (exactness === "fast") return ops === "" ? null : s.suspects(ops);
  if (!recheck) return c.notChecked;
  if (ops !== "") return c.found(ops);
  const tokens = (n: number): string => plural(n, "token");
  return recheck.block < recheck.blockBefore
    ? c.whole(tokens(recheck.block), tokens(recheck.blockBefore))
    : c.none(plural(recheck.checked, "kind of operation", "kinds of operation"));
}

function speedOf(ratio: Ratio | null): string {
  if (!ratio) return s.noSpeed;
  switch (ratio.call) {
    case "higher":
      return s.faster(times(ratio.value));
    case "lower":
      return s.slower(times(ratio.value));
    case "noise":
      return s.noise;
    case "tooFew":
      return s.tooFew(ratio.value.toFixed(2));
  }
}

/** `off`, `auto` or `block 3`. */
export const nameOf = (choice: SpeculationChoice): string => (choice.mode === "block" ? s.block(choice.size) : s.modes[choice.mode]);

/** One sentence on a benchmark. */
export function winner(of: Winner): string {
  return of.verdict === "fastest" ? strings.bench.fastest(nameOf(of.speculation), times(of.ratio.value)) : strings.bench.winners[of.verdict];
}

/** `42.1 (40.0 to 43.5)` */
export const range = (spread: Spread | null, digits = 1): string =>
  spread ? s.range(spread.median.toFixed(digits), spread.min.toFixed(digits), spread.max.toFixed(digits)) : "–";

/** `1.62 (1.55 to 1.70)` and what it is worth. */
export function ratioOf(ratio: Ratio | null): string {
  if (!ratio) return "–";
  const value = ratio.value.toFixed(2);
  const whole = ratio.low !== null && ratio.high !== null ? s.range(value, ratio.low.toFixed(2), ratio.high.toFixed(2)) : value;
  return ratio.call === "noise" ? s.inNoise(whole) : whole;
}

/** A line of the history. */
export function kept(one: Measurement): string {
  const text = one.identical === null ? s.keptUnknown : one.identical ? s.keptIdentical : s.keptDifferent;
  return one.speedup === null ? text : `${text}, ${one.speedup < 1 ? s.keptSlower(times(one.speedup)) : s.keptFaster(times(one.speedup))}`;
}

export type Exactness = "exact" | "fast" | "off";

/** What speculation may have done to a reply. Figures that do not say are of the default, exact mode. */
export function exactnessOf(run: Run): Exactness {
  if (!run.speculating) return "off";
  return run.exactness === "fast" ? "fast" : "exact";
}
