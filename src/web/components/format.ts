/** Formats numbers, money and times for the pages. A null value was not produced, and is never shown as 0. */

import type { Cost } from "../../contract/judgement.ts";

export const NOTHING = "–";

export function countText(n: number): string {
  return n.toLocaleString("en");
}

/** A number's text with the true minus sign. */
function withMinus(text: string): string {
  return text.replaceAll("-", "\u2212");
}

/** Three significant digits; whole numbers without decimals. */
export function numberText(value: number | null | undefined): string {
  if (value === null || value === undefined) return NOTHING;
  if (Number.isInteger(value)) return withMinus(countText(value));
  return withMinus(Math.abs(value) >= 1000 ? countText(Math.round(value)) : Number(value.toPrecision(3)).toString());
}

/** Rewards and scores: three decimals; from a thousand on one decimal, with separators. */
export function scoreText(value: number | null | undefined): string {
  if (value === null || value === undefined) return NOTHING;
  if (Math.abs(value) >= 1000) return withMinus(value.toLocaleString("en", { maximumFractionDigits: 1 }));
  const text = value.toFixed(3);
  return text === "-0.000" ? "0.000" : withMinus(text);
}

/** A difference of scores, with its sign: `+0.125`, `−0.125`. */
export function differenceText(value: number | null | undefined): string {
  if (value === null || value === undefined) return NOTHING;
  const text = scoreText(value);
  return value > 0 && text !== "0.000" ? `+${text}` : text;
}

/** `micros`: micro-dollars. Shows whole cents from ten cents on, and three digits of smaller amounts. */
export function dollarsText(micros: number | null | undefined): string {
  if (micros === null || micros === undefined) return NOTHING;
  const dollars = micros / 1_000_000;
  if (micros === 0) return "$0.00";
  const sign = dollars < 0 ? "\u2212" : "";
  const amount = Math.abs(dollars);
  if (amount >= 0.1) return `${sign}$${amount.toFixed(2)}`;
  return `${sign}$${amount.toFixed(6).replace(/^(0\.0*[1-9]\d{0,2})\d*$/, "$1")}`;
}

/** The total cost of a run: its model, its judges and the platform. An unknown part is left out, with a note. */
export function costText(cost: Cost): string {
  const known = [cost.policy_micros, cost.judge_micros, cost.charged_micros].filter((micros) => micros !== null);
  const all = known.reduce((total, micros) => total + micros, 0);
  if (known.length === 3) return dollarsText(all);
  return all === 0 ? "unknown" : `${dollarsText(all)} or more`;
}

export function percentText(share: number | null | undefined): string {
  return share === null || share === undefined ? NOTHING : `${numberText(share * 100)}\u00a0%`;
}

export function durationText(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined) return NOTHING;
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${Number(seconds.toPrecision(3))} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.round(seconds % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export function bytesText(bytes: number | null | undefined): string {
  if (bytes === null || bytes === undefined) return NOTHING;
  const units = ["B", "kB", "MB", "GB", "TB"] as const;
  let at = 0;
  let value = bytes;
  for (; value >= 1000 && at < units.length - 1; at += 1) value /= 1000;
  return `${Number(value.toPrecision(3))} ${units[at]}`;
}

/** `seconds` since the epoch, in the reader's own time zone. */
export function timeText(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined) return NOTHING;
  return new Date(seconds * 1000).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" });
}

export function agoText(seconds: number | null | undefined, now: number = Date.now()): string {
  if (seconds === null || seconds === undefined) return NOTHING;
  const ago = Math.max(0, now / 1000 - seconds);
  if (ago < 60) return `${Math.floor(ago)} s ago`;
  if (ago < 3600) return `${Math.floor(ago / 60)} min ago`;
  if (ago < 86_400) return `${Math.floor(ago / 3600)} h ago`;
  return `${Math.floor(ago / 86_400)} d ago`;
}

export function sum(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((total, n) => total + n, 0);
}

/** `max_turns_reached` → `max turns reached`. */
export function words(name: string): string {
  return name.replaceAll("_", " ");
}
