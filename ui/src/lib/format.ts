//! Every number and date a person reads is formatted here, as the language in use has them.

import { locale, strings, type Counted } from "./strings";

const formats = new Map<string, Intl.NumberFormat>();

/** `1.62`: always so many decimals. */
export function decimals(n: number, digits: number): string {
  const key = `${locale} ${digits}`;
  let format = formats.get(key);
  if (!format) {
    format = new Intl.NumberFormat(locale, { minimumFractionDigits: digits, maximumFractionDigits: digits });
    formats.set(key, format);
  }
  return format.format(n);
}

/** `32,768` */
export const count = (n: number): string => decimals(n, 0);

/** A day and a time: `30 Nov 2026, 14:05`. */
export const moment = (time: number): string =>
  new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" }).format(time);

/** One decimal until three digits, so that a rate keeps its width: `42.1`, `9.0`, `128`. */
export function rate(n: number): string {
  if (!Number.isFinite(n)) return "–";
  return n < 99.95 ? decimals(n, 1) : count(n);
}

/** `81 %` of a share between 0 and 1. Never rounds up to a full 100 %, nor down to a bare 0 %. */
export function percent(share: number): string {
  if (!Number.isFinite(share)) return "–";
  const whole = Math.round(share * 100);
  const { percent: said } = strings.units;
  if (whole === 100 && share < 1) return said(count(99));
  if (whole === 0 && share > 0) return said(`<${count(1)}`);
  return said(count(whole));
}

/** Milliseconds as a person reads them: `38 ms`, `0.4 s`, `12 s`, `3 min 20 s`. */
export function duration(ms: number): string {
  if (!Number.isFinite(ms)) return "–";
  const { ms: milliseconds, s: second, min: minute } = strings.units;
  if (ms < 99.5) return `${count(ms)} ${milliseconds}`;
  if (ms < 9_950) return `${decimals(ms / 1000, 1)} ${second}`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} ${second}`;
  return `${count(Math.floor(seconds / 60))} ${minute} ${seconds % 60} ${second}`;
}

/** A measured time: `1.94 ms`, `43.6 ms`. */
export const measured = (ms: number): string =>
  Number.isFinite(ms) ? `${decimals(ms, ms < 10 ? 2 : 1)} ${strings.units.ms}` : "–";

/** Decimal units, as disks and the system's own monitor count: `3.2 MB`, `18 GB`. */
export function bytes(n: number): string {
  const units = strings.units.bytes;
  let value = n;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${decimals(value, unit > 0 && value < 9.95 ? 1 : 0)} ${units[unit]}`;
}

/** `1 token`, `12 tokens`. */
export const plural = (n: number, forms: Counted): string =>
  `${count(n)} ${forms[new Intl.PluralRules(locale).select(n)] ?? forms.other}`;

/** Bytes of a whole that are here, in the whole's unit: `4.2 of 16 GB`. */
export function bytesOf(done: number, all: number): string {
  const whole = bytes(all);
  const unit = whole.split(" ")[1] ?? "";
  const part = bytes(done);
  return strings.units.of(part.endsWith(` ${unit}`) ? part.slice(0, -unit.length - 1) : part, whole);
}

/** Seconds that are left, as coarse as they are sure: `40 s`, `3 min`, `2 h 10 min`. */
export function timeLeft(seconds: number): string {
  const { s, min, h } = strings.units;
  if (seconds < 55) return `${Math.max(5, Math.round(seconds / 5) * 5)} ${s}`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${Math.max(1, minutes)} ${min}`;
  return `${count(Math.floor(minutes / 60))} ${h} ${minutes % 60} ${min}`;
}
