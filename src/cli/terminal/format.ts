/** Formats numbers for people. */
import type { RunView } from "../../contract/run.ts";

export function estimateText({ mean, se }: { mean: number | null; se: number | null }): string {
  if (mean === null) return "–";
  return se === null ? mean.toFixed(3) : `${mean.toFixed(3)} ± ${se.toFixed(3)}`;
}

/** "best possible 1.1"; empty if the environment declares no best reward. */
export function bestText({ max_reward }: { readonly max_reward?: number }): string {
  return max_reward === undefined ? "" : `best possible ${max_reward}`;
}

export function countText(count: number): string {
  return count.toLocaleString("en-US");
}

/** "14 s", "3 min 20 s", "2 h 5 min". */
export function durationText(seconds: number): string {
  const whole = Math.ceil(seconds);
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes} min ${whole % 60} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** "1.4 kB", "20.3 MB". */
export function bytesText(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 1e6) return `${(bytes / 1e3).toFixed(1)} kB`;
  return bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(2)} GB`;
}

/** The last epoch second, positive or negative, for which JavaScript has a date. */
const LAST_SECOND = 8_640_000_000_000;

/** Seconds since the epoch as "2026-11-21 14:02:07Z", or the number itself if JavaScript has no date for it. */
export function timeText(seconds: number): string {
  if (Math.abs(seconds) > LAST_SECOND) return `${seconds} s`;
  return `${new Date(seconds * 1000).toISOString().slice(0, 19).replace("T", " ")}Z`;
}

export function sum(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((total, count) => total + count, 0);
}

/** How many rollouts ended, by outcome. */
export function endedCounts({ scored, unscored, failed, cancelled }: RunView["counts"]) {
  return { scored, unscored: sum(unscored), failed: sum(failed), cancelled: sum(cancelled) };
}

/** The same with those that did not end, for --json. */
export function allCounts(counts: RunView["counts"]) {
  const { planned, pending, in_flight } = counts;
  return { planned, pending, in_flight, ...endedCounts(counts) };
}

/** "scored 38, failed 2 (provider)"; leaves out zeros. */
export function namedCounts(counts: Readonly<Record<string, number>>): string {
  const parts = Object.entries(counts).filter(([, count]) => count > 0);
  return parts.map(([name, count]) => `${name} ${countText(count)}`).join(", ") || "–";
}

/** "+0.021", "−0.200", "0.000". */
export function signedText(value: number): string {
  const digits = Math.abs(value).toFixed(3);
  if (Number(digits) === 0) return digits;
  return `${value < 0 ? "−" : "+"}${digits}`;
}

/** "−0.104 to +0.438". */
export function intervalText([low, high]: readonly [number, number]): string {
  return `${signedText(low)} to ${signedText(high)}`;
}

export function pText(p: number): string {
  return p < 0.0001 ? "< 0.0001" : p.toPrecision(2);
}

/** "0.277 to 0.889". */
export function rangeText([low, high]: readonly [number, number]): string {
  return `${low.toFixed(3)} to ${high.toFixed(3)}`;
}

/**
 * The 95 % interval of a mean: "0.277 to 0.889". If it reaches beyond the observed rewards, it says so: "0.970 to
 * 1.010, outside the observed rewards, 0.000 to 1.000". The range of possible rewards is not known, so the interval is
 * not cut off.
 */
export function meanIntervalText(
  interval: readonly [number, number],
  seen: readonly [number, number] | null = null,
): string {
  const text = rangeText(interval);
  if (seen === null || (interval[0] >= seen[0] && interval[1] <= seen[1])) return text;
  return `${text}, outside the observed rewards, ${rangeText(seen)}`;
}

/** "pass@1 0.400 (10 tasks), pass@2 – (0 tasks)"; empty for an empty table. `basis`: the number of tasks for each k. */
export function sharesText(
  name: string,
  byK: Readonly<Record<string, number | null>>,
  basis: Readonly<Record<string, { readonly n_tasks: number }>> = {},
): string {
  const parts = Object.entries(byK).map(([k, share]) => {
    const over = basis[k] === undefined ? "" : ` (${countText(basis[k].n_tasks)} tasks)`;
    return `${name}${k} ${share?.toFixed(3) ?? "–"}${over}`;
  });
  return parts.join(", ");
}

const MICROS = 1_000_000;

/** "$1.50", "−$0.00026": the exact amount, with two to six decimals. */
export function dollarsText(micros: number): string {
  const [whole, rest] = [Math.floor(Math.abs(micros) / MICROS), Math.abs(micros) % MICROS];
  const decimals = String(rest)
    .padStart(6, "0")
    .replace(/0{1,4}$/, "");
  return `${micros < 0 ? "−" : ""}$${countText(whole)}.${decimals}`;
}
