//! What speculation was measured to be worth for a pair here, in words: what is stale says so, an estimate that it is one.

import type { PairVerdict } from "../bindings";
import { times } from "./compare";
import { moment, plural } from "./format";
import { strings } from "./strings";

const drafts = (n: number): string => plural(n, strings.counted.drafts);

export interface Worth {
  line: string;
  /** When, by what, under which conditions. */
  detail: string;
  /** What changed since, if anything did. */
  changed: string | null;
}

export function worth(verdict: PairVerdict): Worth {
  const s = strings.worth;
  const { changes, measuredAt, source, under } = verdict;
  const at = moment(measuredAt);
  const by =
    source.kind === "benchmark"
      ? s.benchmark(at, plural(source.prompts, strings.counted.prompts), plural(source.repetitions, strings.counted.runs))
      : s.replies(at, plural(source.replies, strings.counted.replies));
  const conditions = [under.powerSource, under.powerMode, under.dtype, s.under(under.appVersion, under.mlxVersion)];
  return {
    line: changes.length > 0 ? s.stale(said(verdict)) : said(verdict),
    detail: [by, ...conditions.filter((one) => one !== null)].join(" · "),
    changed: changes.length > 0 ? s.changed(changes.join(", ")) : null,
  };
}

function said({ says, someSlower, source }: PairVerdict): string {
  const s = strings.worth;
  switch (says.verdict) {
    case "fastest": {
      const x = times(says.ratio.value);
      if (source.kind === "replies") return s.estimate(x, drafts(source.depth));
      return says.speculation.mode === "block" ? s.block(x, drafts(says.speculation.size - 1)) : s.auto(x);
    }
    case "off":
      return source.kind === "replies" ? s.offEstimate : s.off;
    case "noise":
    case "unknown":
      return someSlower ? s.noGain : s.noise;
  }
}
