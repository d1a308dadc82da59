//! What a first start offers: the largest pair that fits this machine, or why there is none.

import type { CatalogPair, CatalogView } from "../bindings";

export type Offer =
  | { kind: "get" | "here" | "full" | "offline"; pair: CatalogPair }
  | { kind: "none" | "limited" | "unknown" };

/** The catalogue marks the largest that suits the memory, and the smallest of all where that cannot be read. */
export function offerOf({ machine, pairs }: CatalogView): Offer {
  const pair = pairs.find((pair) => pair.recommended);
  if (pair?.installed) return { kind: "here", pair };
  if (machine.memoryTotal === null) return { kind: "unknown" };
  // A need is told with the limit where it is beyond it.
  if (!pair) return { kind: pairs.some(({ memory }) => memory.limit !== null) ? "limited" : "none" };
  if (machine.offline) return { kind: "offline", pair };
  return { kind: pair.disk.verdict === "tooLarge" ? "full" : "get", pair };
}
