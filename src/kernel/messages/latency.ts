/**
 * Histograms of how long answered model calls took, and of the time that the platform added to their turns. The bounds
 * are fixed, so a million calls take as much space as one. The bounds for model calls are those that OpenTelemetry
 * gives for `gen_ai.client.operation.duration`, from 40 ms on, continued up to the longest possible call.
 */

/** Upper bounds in seconds. One more bucket counts what took longer than the last bound. */
export const LATENCY_BOUNDS_S = [
  ...[0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92],
  ...[163.84, 327.68, 655.36],
] as const;

/**
 * Upper bounds in milliseconds of what the platform adds to a turn: from 1 ms to 16 s, each √2 times the previous one.
 * So a bound is at most 42 % above the true value.
 */
export const PLATFORM_BOUNDS_MS: readonly number[] = Array.from(
  { length: 29 },
  (_, at) => Math.round(100 * 2 ** (at / 2)) / 100,
);

/** `counts[i]`: calls within bound `i` and above the previous bound. The last bucket is above all bounds. */
export interface Counted {
  readonly counts: readonly number[];
  readonly sum_ms: number;
}

/**
 * `platform`: the time that the platform added to the same calls, with its own bounds; absent if it was not measured.
 */
export interface Latencies extends Counted {
  readonly platform?: Counted;
}

/** How long one answered call took, and what the platform added, if that is known. */
export interface TimedCall {
  readonly latency_ms: number;
  readonly platform_ms?: number;
}

export function latenciesOf(calls: readonly TimedCall[]): Latencies {
  const model = calls.map(({ latency_ms }) => latency_ms);
  const added = calls.flatMap(({ platform_ms }) => platform_ms ?? []);
  const bounds_ms = LATENCY_BOUNDS_S.map((bound) => bound * 1000);
  return {
    ...counted(model, bounds_ms),
    ...(added.length > 0 && { platform: counted(added, PLATFORM_BOUNDS_MS) }),
  };
}

function counted(times_ms: readonly number[], bounds_ms: readonly number[]): Counted {
  const counts = Array<number>(bounds_ms.length + 1).fill(0);
  let sum_ms = 0;
  for (const ms of times_ms) {
    const at = bounds_ms.findIndex((bound) => ms <= bound);
    const bucket = at === -1 ? bounds_ms.length : at;
    counts[bucket] = (counts[bucket] ?? 0) + 1;
    sum_ms += Math.max(0, ms);
  }
  return { counts, sum_ms };
}

/** The bound that the given share (0 to 1) of all values is within; the last bound if none is. Null without values. */
export function boundOf({ counts }: Counted, bounds: readonly number[], share: number): number | null {
  const all = counts.reduce((sum, count) => sum + count, 0);
  if (all === 0) return null;
  let within = 0;
  const at = counts.findIndex((count) => {
    within += count;
    return within >= share * all;
  });
  return bounds[at] ?? bounds.at(-1) ?? null;
}

/** The sum of both. Absent means no calls. */
export function addLatencies(one: Latencies | undefined, other: Latencies | undefined): Latencies | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  const platform = addCounted(one.platform, other.platform);
  return { ...bothOf(one, other), ...(platform !== undefined && { platform }) };
}

export function addCounted(one: Counted | undefined, other: Counted | undefined): Counted | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return bothOf(one, other);
}

function bothOf(one: Counted, other: Counted): Counted {
  const length = Math.max(one.counts.length, other.counts.length);
  const counts = Array.from({ length }, (_, at) => (one.counts[at] ?? 0) + (other.counts[at] ?? 0));
  return { counts, sum_ms: one.sum_ms + other.sum_ms };
}
