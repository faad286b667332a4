/**
 * Judges each task of an eval, for reports that name tasks.
 *
 * A task passes if the mean of its scored rollouts is at least 0.5, as in pass@k. A task without a score is an error if
 * something failed or could not be scored, and is skipped if it was cancelled or never started.
 */
import * as z from "zod";
import { Message, textOf } from "../../contract/messages.ts";
import type { ResultRow, RunView } from "../../contract/run.ts";
import { PASS_THRESHOLD } from "../../core/statistics/pass-at-k.ts";

export type TaskVerdict = "passed" | "failure" | "error" | "skipped";

export interface TaskCase {
  readonly name: string;
  readonly kind: TaskVerdict;
  readonly seconds: number;
  /** Why it did not pass; "" if it did. */
  readonly message: string;
  /** The rollout that explains it best; null if it passed or none has ended. */
  readonly rollout: string | null;
  /** The last message of that rollout. */
  readonly reply: string;
}

/** Characters of a rollout's last message. */
const QUOTED_CHARACTERS = 2000;

export const NO_ROLLOUT = { rollout: null, reply: "" } as const;

/** The data of one task, collected while rows are read. */
class Task {
  readonly #metric: string | null;
  #example = 0;
  #seconds = 0;
  #rollouts = 0;
  #scored = 0;
  #sum = 0;
  /** The first rollout that explains why the task failed. */
  #bad: { readonly row: ResultRow; readonly value: number | null } | null = null;

  constructor(metric: string | null) {
    this.#metric = metric;
  }

  add(row: ResultRow): void {
    const value = this.#metric === null ? row.reward : (row.metrics[this.#metric] ?? null);
    this.#example = row.example_id;
    this.#seconds += row.timing.total;
    this.#rollouts += 1;
    if (value !== null) {
      this.#scored += 1;
      this.#sum += value;
    }
    // A readable reply explains more than an error, and both explain more than a cancelled rollout.
    if (rank(row, value) > (this.#bad === null ? 0 : rank(this.#bad.row, this.#bad.value))) {
      this.#bad = { row, value };
    }
  }

  case(): TaskCase {
    const mean = this.#scored === 0 ? null : this.#sum / this.#scored;
    const kind = mean === null ? this.#unscoredKind() : mean < PASS_THRESHOLD ? "failure" : "passed";
    const about = { name: `example ${this.#example}`, kind, seconds: this.#seconds };
    if (kind === "passed" || this.#bad === null) return { ...about, message: "", ...NO_ROLLOUT };
    const of = `${this.#scored} of ${this.#rollouts} rollouts scored`;
    const message =
      mean === null
        ? `${whyNot(this.#bad.row)} (${of})`
        : `${this.#metric ?? "reward"} ${mean.toFixed(3)} is under ${PASS_THRESHOLD} (${of})`;
    return { ...about, message, rollout: this.#bad.row.rollout_id, reply: lastReply(this.#bad.row) };
  }

  #unscoredKind(): TaskVerdict {
    return this.#bad?.row.outcome === "cancelled" ? "skipped" : "error";
  }
}

function rank({ outcome }: ResultRow, value: number | null): number {
  if (value !== null) return value < PASS_THRESHOLD ? 4 : 0;
  return { scored: 1, unscored: 3, failed: 2, cancelled: 1 }[outcome];
}

/** One case per task, in the run's order. A task without an ended rollout was never started. */
export async function taskCases(
  run: RunView,
  rows: AsyncIterable<ResultRow>,
  metric: string | null,
): Promise<TaskCase[]> {
  const tasks = new Map<number, Task>();
  for await (const row of rows) {
    if (row.superseded_by !== null) continue;
    const task = tasks.get(row.group) ?? new Task(metric);
    tasks.set(row.group, task);
    task.add(row);
  }
  return Array.from({ length: run.num_examples }, (_, group) => {
    return tasks.get(group)?.case() ?? notBegun(group);
  });
}

function notBegun(group: number): TaskCase {
  const message = "the run ended before it";
  return { name: `task ${group}`, kind: "skipped", seconds: 0, message, ...NO_ROLLOUT };
}

function whyNot(row: ResultRow): string {
  const [scoring] = row.scoring_errors;
  const error = row.error?.message ?? scoring?.error ?? "no score";
  return `${row.outcome}${row.reason === null ? "" : ` (${row.reason})`}: ${error}`;
}

function lastReply(row: ResultRow): string {
  const last = z.array(Message).safeParse(row.completion.slice(-1)).data?.[0];
  const said = last === undefined ? "" : textOf(last);
  return said.length > QUOTED_CHARACTERS ? `${said.slice(0, QUOTED_CHARACTERS)} …` : said;
}
