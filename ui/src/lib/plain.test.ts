import { expect, test } from "vitest";
import { plainText } from "./plain";

test("marks go and words stay", () => {
  expect(plainText("# A *b* `c`\n\nHello **wide** [world](https://x.y).\n")).toBe("A b c\n\nHello wide world (https://x.y).");
});

test("lists keep their signs, code its lines", () => {
  expect(plainText("1. a\n2. b\n   - c\n\n```js\nlet a = 1 < 2;\n\nb\n```")).toBe("1. a\n2. b\n   - c\n\nlet a = 1 < 2;\n\nb");
});

test("what looks like an entity comes out as written", () => {
  expect(plainText("a < b & c \"d\"")).toBe("a < b & c \"d\"");
});

test("a table is cells with tabs between", () => {
  expect(plainText("| a | b |\n|---|---|\n| 1 | **2** |")).toBe("a\tb\n1\t2");
});
