import { describe, expect, it } from "vitest";
import { pairVerdict } from "../state/samples";
import { worth } from "./worth";

const ratio = { value: 1.31, low: 1.1, high: 1.5, call: "higher" } as const;

describe("what speculation is worth here", () => {
  it("is said with its date and conditions", () => {
    const told = worth(pairVerdict({ measuredAt: Date.UTC(2026, 10, 30, 12) }));
    expect(told.line).toBe("On this computer: 1.42x with 2 drafts per round");
    expect(told.detail).toMatch(/^Benchmark of Nov 30, 2026, \d+:00 [AP]M, 13 prompts, 5 runs of each · mains · float32 · Slipstream 0\.1\.0, MLX 0\.32\.2$/);
    expect(told.changed).toBeNull();
    const single = pairVerdict({ says: { verdict: "fastest", speculation: { mode: "block", size: 2 }, ratio } });
    expect(worth(single).line).toBe("On this computer: 1.31x with 1 draft per round");
    expect(worth(pairVerdict({ says: { verdict: "fastest", speculation: { mode: "auto" }, ratio } })).line).toMatch(/1\.31x with automatic depth/);
  });

  it("is no winner within the noise", () => {
    expect(worth(pairVerdict({ says: { verdict: "noise" } })).line).toBe("On this computer: no difference beyond the noise");
    expect(worth(pairVerdict({ says: { verdict: "noise" }, someSlower: true })).line).toMatch(/no gain beyond the noise/);
    expect(worth(pairVerdict({ says: { verdict: "off" } })).line).toMatch(/fastest without speculation/);
  });

  it("says that it is an estimate where no benchmark was made", () => {
    const told = worth(pairVerdict({ says: { verdict: "fastest", speculation: { mode: "auto" }, ratio }, source: { kind: "replies", replies: 8, depth: 3 } }));
    expect(told.line).toBe("On this computer: about 1.31x, mostly with 3 drafts per round");
    expect(told.detail).toMatch(/^Estimated by Auto .* 8 replies\. No benchmark yet/);
  });

  it("is never stale without saying so", () => {
    const told = worth(pairVerdict({ changes: ["MLX 0.32.2 → 0.33.0", "the model's files"] }));
    expect(told.line).toMatch(/^Stale: On this computer: 1\.42x/);
    expect(told.changed).toBe("Changed since: MLX 0.32.2 → 0.33.0, the model's files. Run the benchmark again.");
  });
});
