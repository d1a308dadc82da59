//! Every number a person reads is formatted here.

const grouped = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

/** `32,768` */
export const count = (n: number): string => grouped.format(n);

/** One decimal until three digits, so that a rate keeps its width: `42.1`, `9.0`, `128`. */
export function rate(n: number): string {
  if (!Number.isFinite(n)) return "–";
  return n < 99.95 ? n.toFixed(1) : grouped.format(n);
}

/** `81 %` of a share between 0 and 1. Never rounds up to a full 100 %, nor down to a bare 0 %. */
export function percent(share: number): string {
  if (!Number.isFinite(share)) return "–";
  const whole = Math.round(share * 100);
  if (whole === 100 && share < 1) return "99 %";
  if (whole === 0 && share > 0) return "<1 %";
  return `${whole} %`;
}

/** Milliseconds as a person reads them: `38 ms`, `0.4 s`, `12 s`, `3 min 20 s`. */
export function duration(ms: number): string {
  if (!Number.isFinite(ms)) return "–";
  if (ms < 99.5) return `${Math.round(ms)} ms`;
  if (ms < 9_950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/** A measured time: `1.94 ms`, `43.6 ms`. */
export const measured = (ms: number): string => (Number.isFinite(ms) ? `${ms.toFixed(ms < 10 ? 2 : 1)} ms` : "–");

/** Decimal units, as disks and the system's own monitor count: `3.2 MB`, `18 GB`. */
export function bytes(n: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let value = n;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit > 0 && value < 9.95 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

/** `1 token`, `12 tokens`. */
export const plural = (n: number, one: string, many = `${one}s`): string =>
  `${count(n)} ${n === 1 ? one : many}`;

/** Bytes of a whole that are here, in the whole's unit: `4.2 of 16 GB`. */
export function bytesOf(done: number, all: number): string {
  const whole = bytes(all);
  const unit = whole.split(" ")[1] ?? "B";
  const part = bytes(done);
  return part.endsWith(` ${unit}`) ? `${part.slice(0, -unit.length - 1)} of ${whole}` : `${part} of ${whole}`;
}

/** Seconds that are left, as coarse as they are sure: `40 s`, `3 min`, `2 h 10 min`. */
export function timeLeft(seconds: number): string {
  if (seconds < 55) return `${Math.max(5, Math.round(seconds / 5) * 5)} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${Math.max(1, minutes)} min`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
