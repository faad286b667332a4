/** Computes one case's row: medians over its pairs for rates and CPU, the maximum for memory and open files. */
import type { Counts } from "./counters.ts";
import type { Case, Pair, Side } from "./pair.ts";
import { IN_FLIGHT } from "./workload.ts";

export interface Instructions {
  readonly workerd: number;
  readonly baseline: number;
  /** The kernel's instructions for the processes; null if only the user's own are counted. */
  readonly workerd_kernel: number | null;
  readonly baseline_kernel: number | null;
  /** The ratio of the processes' own instructions, median over the pairs. */
  readonly ratio: number;
}

export interface Row extends Case {
  readonly in_flight: number;
  readonly rollouts_per_s: number;
  readonly turns_per_s: number;
  /** The time of a turn beyond the model's latency with `in_flight` of them at once, including waits for a core. */
  readonly overhead_ms_per_turn: number;
  readonly baseline_overhead_ms_per_turn: number;
  readonly workerd_cpu_ms_per_rollout: number;
  /** CPU seconds of one side, by process. */
  /** Workerd's CPU per rollout ÷ the bare loop's, median over the pairs. */
  readonly cpu_ratio: number;
  /** Millions, of workerd and of the bare loop; null if they cannot be counted. */
  readonly instructions_m_per_rollout: Instructions | null;
  readonly fsyncs_per_rollout: number | null;
  readonly cpu_s: Readonly<Record<string, number>>;
  readonly baseline_cpu_s: Readonly<Record<string, number>>;
  /** The maximum for workerd. */
  readonly peak_rss_mb: number;
  readonly peak_open_files: number;
  readonly baseline_rollouts_per_s: number;
  /** Median over the pairs of platform rollouts/s ÷ baseline rollouts/s. */
  readonly ratio: number;
  readonly ratio_pairs: readonly number[];
}

export function rowOf(work: Case, pairs: readonly Pair[]): Row {
  const platforms = pairs.map(({ platform }) => platform);
  const baselines = pairs.map(({ baseline }) => baseline);
  const secondsPerRollout = medianOf(platforms, ({ seconds }) => seconds / work.rollouts);
  const baselineSeconds = medianOf(baselines, ({ seconds }) => seconds / work.rollouts);
  const cpu = medianByName(platforms);
  const ratios = pairs.map(({ platform, baseline }) => baseline.seconds / platform.seconds);
  return {
    ...work,
    in_flight: Math.min(IN_FLIGHT, work.rollouts),
    rollouts_per_s: rounded(1 / secondsPerRollout, 1),
    turns_per_s: rounded(work.turns / secondsPerRollout, 1),
    overhead_ms_per_turn: overheadMs(work, secondsPerRollout),
    baseline_overhead_ms_per_turn: overheadMs(work, baselineSeconds),
    workerd_cpu_ms_per_rollout: rounded(((cpu["workerd"] ?? 0) * 1000) / work.rollouts, 2),
    cpu_ratio: rounded(medianOf(pairs, cpuRatio), 3),
    instructions_m_per_rollout: instructionsOf(work, pairs),
    fsyncs_per_rollout: perRollout(work, platforms, "fsyncs", 1),
    cpu_s: cpu,
    baseline_cpu_s: medianByName(baselines),
    peak_rss_mb: Math.round(Math.max(...platforms.map(peak("peakRssMb")))),
    peak_open_files: Math.max(...platforms.map(peak("peakOpenFiles"))),
    baseline_rollouts_per_s: rounded(1 / baselineSeconds, 1),
    ratio: rounded(median(ratios), 3),
    ratio_pairs: ratios.map((ratio) => rounded(ratio, 3)),
  };
}

/** Little's law: time in flight = number in flight ÷ rate. */
function overheadMs({ turns, rollouts, latency_ms, latency_sigma }: Case, secondsPerRollout: number): number {
  const inFlight = Math.min(IN_FLIGHT, rollouts);
  const mean = latency_ms * Math.exp(latency_sigma ** 2 / 2);
  return rounded((inFlight * secondsPerRollout * 1000) / turns - mean, 1);
}

function cpuRatio({ platform, baseline }: Pair): number {
  return (platform.usage.cpuSeconds["workerd"] ?? Number.NaN) / (baseline.usage.cpuSeconds["baseline"] ?? Number.NaN);
}

function instructionsOf(work: Case, pairs: readonly Pair[]): Instructions | null {
  const platforms = pairs.map(({ platform }) => platform);
  const baselines = pairs.map(({ baseline }) => baseline);
  const millions = (sides: readonly Side[], what: keyof Counts) => perRollout(work, sides, what, 2, 1e6);
  const workerd = millions(platforms, "instructions");
  const baseline = millions(baselines, "instructions");
  if (workerd === null || baseline === null) return null;
  const ratios = pairs.map(
    (pair) => Number(pair.platform.counts.instructions) / Number(pair.baseline.counts.instructions),
  );
  return {
    workerd,
    baseline,
    workerd_kernel: millions(platforms, "kernel_instructions"),
    baseline_kernel: millions(baselines, "kernel_instructions"),
    ratio: rounded(median(ratios), 3),
  };
}

/** The median over the sides; null if it was not counted. */
function perRollout({ rollouts }: Case, sides: readonly Side[], what: keyof Counts, digits: number, unit = 1) {
  const counts = sides.flatMap(({ counts }) => counts[what] ?? []);
  return counts.length === 0 ? null : rounded(median(counts) / unit / rollouts, digits);
}

function peak(what: "peakRssMb" | "peakOpenFiles"): (side: Side) => number {
  return ({ usage }) => usage[what]["workerd"] ?? 0;
}

function medianByName(sides: readonly Side[]): Record<string, number> {
  const names = Object.keys(sides[0]?.usage.cpuSeconds ?? {});
  return Object.fromEntries(
    names.map((name) => {
      return [
        name,
        rounded(
          medianOf(sides, ({ usage }) => usage.cpuSeconds[name] ?? 0),
          2,
        ),
      ];
    }),
  );
}

function medianOf<T>(items: readonly T[], value: (item: T) => number): number {
  return median(items.map(value));
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  const upper = sorted[Math.floor(middle)] ?? Number.NaN;
  return Number.isInteger(middle) ? ((sorted[middle - 1] ?? Number.NaN) + upper) / 2 : upper;
}

function rounded(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}
