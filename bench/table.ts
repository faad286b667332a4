/** The rows as the Markdown that stands in docs/performance.md. */
import type { Machine } from "./machine.ts";
import type { Row } from "./row.ts";

/** CPU per rollout may grow by so much from the smallest to the largest run: what it costs must not depend on size. */
const WANTED_GROWTH = 1.3;

export function benchTable(machine: Machine, rows: readonly Row[], date: Date): string {
  const columns = [
    "rollouts × turns",
    "latency",
    "rollouts/s",
    "baseline",
    "ratio",
    "pairs",
    "ms/turn over latency (baseline)",
    "workerd CPU/rollout",
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
    `${row.rollouts.toLocaleString("en")} × ${row.turns}`,
    `${row.latency_ms} ms`,
    String(row.rollouts_per_s),
    String(row.baseline_rollouts_per_s),
    `**${row.ratio.toFixed(2)}**`,
    row.ratio_pairs.map((ratio) => ratio.toFixed(2)).join(" "),
    `${row.overhead_ms_per_turn} (${row.baseline_overhead_ms_per_turn})`,
    `${row.workerd_cpu_ms_per_rollout} ms`,
    `${cpu(workerd)} + ${cpu(platform)} + ${cpu(model)}`,
    `${cpu(baseline)} + ${cpu(baselineModel)}`,
    `${row.peak_rss_mb} MB`,
    String(row.peak_open_files),
  ];
}

function line(cells: readonly string[]): string {
  return `| ${cells.join(" | ")} |`;
}

/** How CPU per rollout grows with the size of the run, among the rows without latency. */
function growth(rows: readonly Row[]): string[] {
  const bySize = rows.filter(({ latency_ms }) => latency_ms === 0).toSorted((a, b) => a.rollouts - b.rollouts);
  const [small, large] = [bySize[0], bySize.at(-1)];
  if (small === undefined || large === undefined || small.rollouts === large.rollouts) return [];
  const times = large.workerd_cpu_ms_per_rollout / small.workerd_cpu_ms_per_rollout;
  const sizes = `${large.rollouts.toLocaleString("en")} against ${small.rollouts.toLocaleString("en")}`;
  const wanted = `wanted: at most ${WANTED_GROWTH}×`;
  return ["", `workerd's CPU per rollout, ${sizes}: ${times.toFixed(2)}× (${wanted}).`];
}
