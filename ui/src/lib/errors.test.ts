import { expect, test } from "vitest";
import { asOne } from "./errors";

const error = (message: string) => ({ kind: "input", message, hint: `mend ${message}` });

test("several failures are all told, and one is told as it is", () => {
  expect(asOne([], "Look.")).toBeNull();
  expect(asOne([error("a")], "Look.")).toEqual(error("a"));
  expect(asOne([error("a"), error("b")], "Look.")).toEqual({ kind: "input", message: "a; b", hint: "Look." });
});
