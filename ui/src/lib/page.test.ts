import { expect, test } from "vitest";
import { firstPage, PAGE } from "./page";

const chat = (count: number, length: number) => Array.from({ length: count }, () => ({ content: "x".repeat(length) }));

test("a chat of long messages opens with few of them, one of short ones with more", () => {
  expect(firstPage(chat(400, 1000))).toBe(5);
  expect(firstPage(chat(400, 20))).toBe(23);
  expect(firstPage(chat(400, 90_000))).toBe(2);
});

test("a short chat is shown whole, and stays so as it grows", () => {
  expect(firstPage([])).toBe(2 * PAGE);
  expect(firstPage(chat(4, 100))).toBe(2 * PAGE);
});
