//! What measurements say, in words. A winner is named only where the app called one.

import type { BenchReport, Comparison, Difference, Measurement, Ratio, Run, SideFigures, SpeculationChoice, Spread } from "../bindings";
import { count, decimals, plural } from "./format";
import { strings } from "./strings";

/** `1.62` of a ratio; slower ones the other way round. */
export const times = (ratio: number): string => decimals(ratio < 1 ? 1 / ratio : ratio, 2);

export type Tone = "good" | "bad" | "plain";

/** The largest line of a comparison. */
export function verdict({ agreement, on, speedup }: Comparison): { line: string; tone: Tone } {
  if (agreement.verdict === "unknown") return { line: strings.compare.unknown, tone: "plain" };
  // Plain decoding compared with itself shows nothing.
  if (!on.speculating && agreement.verdict === "identical") return { line: strings.compare.notRun(whyNot(on)), tone: "plain" };
  const speed = on.speculating ? speedOf(speedup) : strings.compare.notRun(whyNot(on));
  if (agreement.verdict === "identical") return { line: `${strings.compare.identical(plural(agreement.tokens, strings.counted.tokens))} ${speed}`, tone: "good" };
  const { side, position } = agreement.difference;
  return { line: `${side === "off" ? strings.compare.unsteady(count(position + 1)) : strings.compare.different(count(position + 1))} ${speed}`, tone: "bad" };
}

/** Which operation made the difference, or how far it was looked for; nothing to say in fast mode where none is known. */
export function causeOf({ side, suspects, recheck }: Difference, exactness: string): string | null {
  const c = strings.compare.cause;
  if (side === "off") return c.plain;
  const ops = suspects.join("; ");
  if (exactness === "fast") return ops === "" ? null : strings.compare.suspects(ops);
  if (!recheck) return c.notChecked;
  if (ops !== "") return c.found(ops);
  const tokens = (n: number): string => plural(n, strings.counted.tokens);
  return recheck.block < recheck.blockBefore
    ? c.whole(tokens(recheck.block), tokens(recheck.blockBefore))
    : c.none(plural(recheck.checked, strings.counted.operations));
}

/** Why speculation did not run, without a full stop. */
export const whyNot = ({ reason }: SideFigures): string => (reason ?? strings.compare.noReason).replace(/\.$/, "");

/** Blocks that were cut to what is exact here, in a sentence; nothing where all ran as asked. */
export const cutOf = ({ speculation, asked }: SideFigures): string | null =>
  asked.length === 0 ? null : strings.compare.ranAs(asked.map(nameOf).join(", "), nameOf(speculation));

function speedOf(ratio: Ratio | null): string {
  if (!ratio) return strings.compare.noSpeed;
  switch (ratio.call) {
    case "higher":
      return strings.compare.faster(times(ratio.value));
    case "lower":
      return strings.compare.slower(times(ratio.value));
    case "noise":
      return strings.compare.noise;
    case "tooFew":
      return strings.compare.tooFew(decimals(ratio.value, 2));
  }
}

/** `off`, `auto` or `block 3`. */
export const nameOf = (choice: SpeculationChoice): string => (choice.mode === "block" ? strings.compare.block(choice.size) : strings.compare.modes[choice.mode]);

/** One sentence on a benchmark. */
export function winner({ winner: of, arms, runs }: BenchReport): string {
  if (of.verdict === "fastest") return strings.bench.fastest(nameOf(of.speculation), times(of.ratio.value));
  const on = arms.filter(({ figures }) => figures.speculation.mode !== "off");
  const slower = on.filter((arm) => arm.speedup?.call === "lower");
  if (of.verdict === "noise" && slower.length > 0) return strings.bench.slower(slower.map((arm) => nameOf(arm.figures.speculation)).join(", "));
  if (of.verdict === "unknown" && on[0] && runs.length > 0) {
    if (on.every((arm) => !arm.figures.speculating)) return strings.bench.plain(whyNot(on[0].figures));
    if (arms.every((arm) => arm.figures.tokensPerSecond === null)) return strings.bench.short;
  }
  return strings.bench.winners[of.verdict];
}

/** `42.1 (40.0 to 43.5)` */
export const range = (spread: Spread | null, digits = 1): string =>
  spread ? strings.compare.range(decimals(spread.median, digits), decimals(spread.min, digits), decimals(spread.max, digits)) : "–";

/** `1.62 (1.55 to 1.70)` and what it is worth. */
export function ratioOf(ratio: Ratio | null): string {
  if (!ratio) return "–";
  const value = decimals(ratio.value, 2);
  const whole = ratio.low !== null && ratio.high !== null ? strings.compare.range(value, decimals(ratio.low, 2), decimals(ratio.high, 2)) : value;
  return ratio.call === "noise" ? strings.compare.inNoise(whole) : whole;
}

/** A line of the history. */
export function kept(one: Measurement): string {
  const text = one.identical === null ? strings.compare.keptUnknown : one.identical ? strings.compare.keptIdentical : strings.compare.keptDifferent;
  return one.speedup === null ? text : `${text}, ${one.speedup < 1 ? strings.compare.keptSlower(times(one.speedup)) : strings.compare.keptFaster(times(one.speedup))}`;
}

export type Exactness = "exact" | "fast" | "off";

/** What speculation may have done to a reply. Figures that do not say are of the default, exact mode. */
export function exactnessOf(run: Run): Exactness {
  if (!run.speculating) return "off";
  return run.exactness === "fast" ? "fast" : "exact";
}
