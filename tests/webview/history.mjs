// Chats as the app exports them, for a window that opens with a past.
import { writeFileSync } from "node:fs";
import { join } from "node:path";

const REPLY = `A stack gives back **last** what it took *first*: \`push\` and \`pop\` work at the same end.

1. Keep the items in a vector.
2. Push adds at its end, pop takes from there.
3. Nothing else touches the items.

\`\`\`rust
/// The last value in is the first one out.
pub struct Stack<T> {
    items: Vec<T>,
}

impl<T> Stack<T> {
    pub fn push(&mut self, item: T) {
        self.items.push(item);
    }

    pub fn pop(&mut self) -> Option<T> {
        self.items.pop()
    }
}
\`\`\`

| operation | cost | note |
|---|---:|---|
| push | O(1) | amortised |
| pop | O(1) | |

> Think of plates: nobody takes the lowest.

See [the book](https://doc.rust-lang.org/book/) for more.`;

const kept = Array.from({ length: 48 }, (_, round) => [2, 1, 2, 0, 2, 1][round % 6]);

const run = {
  model: "Slipstream Tiny",
  speculating: true,
  state: "fixed",
  sentence: "on: 2 drafts a round, as asked",
  reason: null,
  exactness: "exact",
  exactnessSentence: "exact: on this machine a block of tokens gives what single tokens give",
  blockSize: 3,
  wiring: null,
  promptTokens: 38,
  tokens: 112,
  prefillMs: 312,
  ttftMs: 402,
  decodeMs: 2700,
  tokensPerSecond: 41.4,
  rounds: kept.length,
  plainRounds: 0,
  drafted: 96,
  accepted: 64,
  acceptanceRate: 0.667,
  tokensPerRound: 2.33,
  acceptanceByPosition: [0.83, 0.5],
  acceptedPerRound: kept,
  draftedPerRound: kept.map(() => 2),
  seed: 7,
};

const minute = 60_000;

/** A chat of `pairs` questions with their replies; the last one is `age` old. */
export function chat(title, pairs, { reply = REPLY, age = 0, ...more } = {}) {
  const end = Date.now() - age;
  const at = (n) => end - (2 * pairs - n) * minute;
  const messages = Array.from({ length: 2 * pairs }, (_, n) =>
    n % 2 === 0
      ? { parent: n === 0 ? null : n - 1, role: "user", content: n === 0 ? title : `Question ${n / 2}: how does it work?`, status: "complete", createdAt: at(n) }
      : { parent: n - 1, role: "assistant", content: reply, status: "complete", createdAt: at(n), run },
  );
  return { title, createdAt: at(0), updatedAt: end, pinned: false, tags: [], messages, shown: messages.length - 1, ...more };
}

/** Lets a home's window open with these chats. */
export function begin(home, chats) {
  const file = join(home.path, "chats.json");
  writeFileSync(file, JSON.stringify({ format: "slipstream-chats", version: 1, chats }));
  home.env.SLIPSTREAM_STORY_CHATS = file;
}
