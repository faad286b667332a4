/** Rollouts as CSV: one line each, numbers unchanged, null as an empty cell. Pure. */
import type { RolloutSummary } from "../../../contract/rollout-list.ts";

const FIELDS: readonly (readonly [string, (row: RolloutSummary) => unknown])[] = [
  ["id", (row) => row.id],
  ["group", (row) => row.group],
  ["slot", (row) => row.slot],
  ["attempt", (row) => row.attempt],
  ["superseded_by", (row) => row.superseded_by],
  ["task_key", (row) => row.task_key],
  ["task_text", (row) => row.task_text],
  ["member", (row) => row.member],
  ["status", (row) => row.status],
  ["outcome", (row) => row.outcome],
  ["reason", (row) => row.reason],
  ["reward", (row) => row.reward],
  ["advantage", (row) => row.advantage],
  ["stop_condition", (row) => row.stop_condition],
  ["is_truncated", (row) => row.is_truncated],
  ["turns", (row) => row.turns],
  ["calls", (row) => row.calls],
  ["prompt_tokens", (row) => row.prompt_tokens],
  ["completion_tokens", (row) => row.completion_tokens],
  ["duration_s", (row) => row.duration],
  ["policy_micros", (row) => row.cost.policy_micros],
  ["judge_micros", (row) => row.cost.judge_micros],
  ["charged_micros", (row) => row.cost.charged_micros],
  ["step", (row) => row.step],
  ["error", (row) => row.error?.error],
  ["message", (row) => row.error?.message],
];

export function csvHeader(metrics: readonly string[]): string {
  return line([...FIELDS.map(([name]) => name), ...metrics]);
}

export function csvRow(row: RolloutSummary, metrics: readonly string[]): string {
  const scores = metrics.map((name) => row.scores.find((score) => score.name === name)?.score);
  return line([...FIELDS.map(([, read]) => read(row)), ...scores]);
}

function line(values: readonly unknown[]): string {
  return values.map(cell).join(",");
}

/** A spreadsheet would run a text that begins like a formula, so such a text gets an apostrophe before it. */
function cell(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  const text = String(value);
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
