//! The chat list's headings by the calendar day of a chat's last message.

export type Day = "today" | "yesterday" | "week" | "older";

/** Local midnight that starts the day `ago` days before `now`; by calendar, so that a clock change moves nothing. */
function midnight(now: number, ago: number): number {
  const date = new Date(now);
  return new Date(date.getFullYear(), date.getMonth(), date.getDate() - ago).getTime();
}

/** The heading of a moment. The future counts as today: clocks get set back. */
export function dayOf(time: number, now: number): Day {
  if (time >= midnight(now, 0)) return "today";
  if (time >= midnight(now, 1)) return "yesterday";
  if (time >= midnight(now, 7)) return "week";
  return "older";
}

/** Groups in list order; a heading without chats is left out. */
export function groupByDay<T extends { updatedAt: number }>(
  items: readonly T[],
  now: number,
): { day: Day; items: T[] }[] {
  const groups: { day: Day; items: T[] }[] = [];
  for (const item of items) {
    const day = dayOf(item.updatedAt, now);
    const last = groups.at(-1);
    if (last?.day === day) last.items.push(item);
    else groups.push({ day, items: [item] });
  }
  return groups;
}

/** Milliseconds until the headings move. */
export const untilTomorrow = (now: number): number => midnight(now, -1) - now;
