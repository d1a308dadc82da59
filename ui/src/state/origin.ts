//! How the reply that is being written comes.

import type { Provenance, ProvenanceNews } from "../bindings";

export interface LiveOrigin extends Provenance {
  messageId: number;
}

export type OriginEvent = { type: "began"; messageId: number } | { type: "told"; messageId: number; news: ProvenanceNews };

export function apply(state: LiveOrigin | null, event: OriginEvent): LiveOrigin | null {
  switch (event.type) {
    case "began":
      return { messageId: event.messageId, rounds: [], pace: [] };
    case "told": {
      if (state?.messageId !== event.messageId) return state;
      const { from, rounds, pace } = event.news;
      return { ...state, rounds: [...state.rounds.slice(0, from), ...rounds], pace };
    }
  }
}
