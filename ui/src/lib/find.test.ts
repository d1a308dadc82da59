import { expect, test } from "vitest";
import { findAll, placeIn } from "./find";

test("matches are found in any case and do not overlap", () => {
  expect(findAll("Banana BANANA", "ana")).toEqual([1, 8]);
  expect(findAll("aaaa", "aa")).toEqual([0, 2]);
  expect(findAll("abc", "")).toEqual([]);
  expect(findAll("a.c abc", "a.c")).toEqual([0]);
});

test("letters that grow in lower case move nothing", () => {
  // A dotted capital I is two code units in lower case.
  expect(findAll("İİ needle", "NEEDLE")).toEqual([3]);
  expect(findAll("東京の天気", "天気")).toEqual([3]);
});

test("a place in all pieces is one in a piece", () => {
  const lengths = [3, 0, 2];
  expect(placeIn(lengths, 0, false)).toEqual({ piece: 0, offset: 0 });
  expect(placeIn(lengths, 3, true)).toEqual({ piece: 0, offset: 3 });
  expect(placeIn(lengths, 3, false)).toEqual({ piece: 2, offset: 0 });
  expect(placeIn(lengths, 5, true)).toEqual({ piece: 2, offset: 2 });
});

test("a letter whose lower case is longer is found all the same", () => {
  expect(findAll("in İstanbul 👩‍👩‍👧 İS", "is")).toEqual([3, 21]);
});
