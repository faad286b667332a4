/** Prints the rows as the Markdown of docs/performance.md. */
import type { Machine } from "./machine.ts";
import type { Case } from "./pair.ts";
import type { Row } from "./row.ts";

/** The allowed growth of CPU per rollout from the smallest to the largest run: the cost must not depend on size. */
const WANTED_GROWTH = 1.3;

export function benchTable(machine: Machine, rows: readonly Row[], date: Date): string {
  const columns = [
    "rollouts × turns",
    "state",
    "way out",
    "latency",
    "rollouts/s",
    "baseline",
    "ratio",
    "pairs",
    "ms/turn over latency (baseline)",
    "workerd CPU/rollout (× baseline)",
    "M instructions/rollout, + kernel (baseline; ×)",
    "fsyncs/rollout",
    "CPU s: workerd + node + model",
    "baseline + model",
    "peak RSS",
    "open files",
  ];
  const lines = rows.map((row) => line(cells(row)));
  const head = [line(columns), line(columns.map(() => "---"))];
  const { cpu, cores, memory_gb } = machine;
  const about = `${date.toISOString().slice(0, 10)}, ${cores} × ${cpu}, ${memory_gb} GB.`;
  return [about, "", ...head, ...lines, ...growth(rows)].join("\n");
}

function cells(row: Row): string[] {
  const cpu = (seconds: number | undefined) => (seconds ?? 0).toFixed(1);
  const { workerd, platform, model } = row.cpu_s;
  const { baseline, model: baselineModel } = row.baseline_cpu_s;
  return [
    `${row.rollouts.toLocaleString("en")} × ${row.turns}${row.kind === "training" ? ", training" : ""}`,
    row.state,
    row.way_out,
    latencyOf(row),
    String(row.rollouts_per_s),
    String(row.baseline_rollouts_per_s),
    `**${row.ratio.toFixed(2)}**`,
    row.ratio_pairs.map((ratio) => ratio.toFixed(2)).join(" "),
    `${row.overhead_ms_per_turn} (${row.baseline_overhead_ms_per_turn})`,
    `${row.workerd_cpu_ms_per_rollout} ms (${row.cpu_ratio.toFixed(2)} ×)`,
    instructionsIn(row),
    String(row.fsyncs_per_rollout ?? "–"),
    `${cpu(workerd)} + ${cpu(platform)} + ${cpu(model)}`,
    `${cpu(baseline)} + ${cpu(baselineModel)}`,
    `${row.peak_rss_mb} MB`,
    String(row.peak_open_files),
  ];
}

/** In the form of the flag --latency. */
export function latencyOf({ latency_ms, latency_sigma }: Case): string {
  return latency_sigma > 0 ? `${latency_ms}~${latency_sigma} ms` : `${latency_ms} ms`;
}

function instructionsIn({ instructions_m_per_rollout: counted }: Row): string {
  if (counted === null) return "–";
  const { workerd, workerd_kernel, baseline, baseline_kernel, ratio } = counted;
  const both = (own: number, kernel: number | null) => (kernel === null ? `${own}` : `${own} + ${kernel}`);
  return `${both(workerd, workerd_kernel)} (${both(baseline, baseline_kernel)}; **${ratio.toFixed(2)} ×**)`;
}

function line(cells: readonly string[]): string {
  return `| ${cells.join(" | ")} |`;
}

/** How CPU per rollout grows with the size of the run, for evals in memory, as deployed and without latency. */
function growth(rows: readonly Row[]): string[] {
  const bySize = rows
    .filter(({ latency_ms, state, way_out, kind }) => {
      return latency_ms === 0 && state === "memory" && way_out === "fetch" && kind === "eval";
    })
    .toSorted((a, b) => a.rollouts - b.rollouts);
  const [small, large] = [bySize[0], bySize.at(-1)];
  if (small === undefined || large === undefined || small.rollouts === large.rollouts) return [];
  const times = large.workerd_cpu_ms_per_rollout / small.workerd_cpu_ms_per_rollout;
  const sizes = `${large.rollouts.toLocaleString("en")} against ${small.rollouts.toLocaleString("en")}`;
  const wanted = `wanted: at most ${WANTED_GROWTH}×`;
  return ["", `workerd's CPU per rollout, ${sizes}: ${times.toFixed(2)}× (${wanted}).`];
}
