import { expect, test } from "vitest";
import { dayOf, groupByDay, untilTomorrow } from "./days";

const now = new Date(2026, 10, 29, 15, 30).getTime();
const at = (day: number, hour = 12): number => new Date(2026, 10, day, hour).getTime();

test("days are calendar days, not 24 hours", () => {
  expect(dayOf(at(29, 0), now)).toBe("today");
  expect(dayOf(at(28, 23), now)).toBe("yesterday");
  expect(dayOf(at(28, 0), now)).toBe("yesterday");
  expect(dayOf(at(27, 23), now)).toBe("week");
  expect(dayOf(at(22, 0), now)).toBe("week");
  expect(dayOf(at(21, 23), now)).toBe("older");
  expect(dayOf(at(30), now)).toBe("today");
});

test("groups keep the order and leave out empty headings", () => {
  const groups = groupByDay([{ updatedAt: at(29, 0) }, { updatedAt: at(1) }, { updatedAt: at(1, 3) }], now);
  expect(groups.map((g) => [g.day, g.items.length])).toEqual([["today", 1], ["older", 2]]);
});

test("the headings move at midnight, also in the night that the clock changes", () => {
  for (const moment of [now, at(29, 0), new Date(2026, 9, 25, 0, 30).getTime(), new Date(2026, 2, 29, 0, 30).getTime()]) {
    const then = moment + untilTomorrow(moment);
    expect([dayOf(moment, then - 1), dayOf(moment, then)]).toEqual(["today", "yesterday"]);
  }
});
