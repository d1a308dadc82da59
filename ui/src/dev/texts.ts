//! Texts for the fake.

export const TITLES = [
  "Explain how a stack works.", "Notes on speculative decoding in small models", "Write a haiku about the sea.", "What is 12 + 30?",
  "A chat with four hundred messages", "Binary search, step by step", "Names for a boat", "Regular expressions for dates", "A letter to the council",
];

export const CODE = `A **stack** keeps things in the order they came and gives back the *last* one first. Two operations are enough:

1. \`push\` puts a value on top.

2. \`pop\` takes the top value off.

\`\`\`rust
struct Stack<T> {
    items: Vec<T>,
}

impl<T> Stack<T> {
    // The last value in is the first one out.
    fn pop(&mut self) -> Option<T> {
        self.items.pop()
    }
}
\`\`\`

| operation | cost | note |
|---|--:|---|
| push | O(1) | amortised |
| pop | O(1) | |

> Think of plates: nobody takes the lowest.

See [the Rust book](https://doc.rust-lang.org/book/) for more.`;

const SHORT: Record<string, string> = {
  "What is the capital of France?": "The capital of France is **Paris**.",
  "What is 12 + 30?": "12 + 30 = 42.",
  "Write a haiku about the sea.": "Grey water folding,\na gull holds still in the wind,\nsalt on the window.",
};

export function replyTo(prompt: string, long: boolean): { reasoning: string; answer: string } {
  const short = SHORT[prompt];
  if (short) return { reasoning: "", answer: short };
  const answer = long ? `${CODE}\n\n`.repeat(40) : CODE;
  return { reasoning: "The person asks how it works. A short account, then code, then costs.\n\n", answer };
}
