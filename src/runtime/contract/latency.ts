/**
 * How long answered calls of a model took, counted by fixed bounds: as much to store and to send for a million calls as
 * for one. The bounds are those that OpenTelemetry names for `gen_ai.client.operation.duration`, from 40 ms on, and go on
 * to the longest call there may be.
 */

/** Upper bounds in seconds; what took longer than the last is counted behind it. */
export const LATENCY_BOUNDS_S = [
  ...[0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92],
  ...[163.84, 327.68, 655.36],
] as const;

/** `counts[i]`: calls within the bound `i` and beyond the one before, one more for what took longer than any. */
export interface Latencies {
  readonly counts: readonly number[];
  readonly sum_ms: number;
}

export function latenciesOf(times_ms: readonly number[]): Latencies {
  const counts = Array<number>(LATENCY_BOUNDS_S.length + 1).fill(0);
  let sum_ms = 0;
  for (const ms of times_ms) {
    const at = LATENCY_BOUNDS_S.findIndex((bound) => ms <= bound * 1000);
    const bucket = at === -1 ? LATENCY_BOUNDS_S.length : at;
    counts[bucket] = (counts[bucket] ?? 0) + 1;
    sum_ms += Math.max(0, ms);
  }
  return { counts, sum_ms };
}

/** Both together; absent: none. */
export function addLatencies(one: Latencies | undefined, other: Latencies | undefined): Latencies | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  const length = Math.max(one.counts.length, other.counts.length);
  const counts = Array.from({ length }, (_, at) => (one.counts[at] ?? 0) + (other.counts[at] ?? 0));
  return { counts, sum_ms: one.sum_ms + other.sum_ms };
}
