/**
 * Writes an eval as a JUnit report, which every build server reads: a test case for each task, and one for each gate.
 *
 * A task passes if the mean of its scored rollouts is at least 0.5, as in pass@k. A task without a score is an error if
 * something failed or could not be scored, and is skipped if it was cancelled or never started. The file contains model
 * output: every character that XML does not allow is shown as its code. The file is valid by the schema of Jenkins'
 * xUnit plugin, the strictest one in use.
 */

import { createWriteStream } from "node:fs";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import * as z from "zod";
import { Message, textOf } from "../../contract/messages.ts";
import type { ResultRow, RunView } from "../../contract/run.ts";
import { PASS_THRESHOLD } from "../../core/statistics/pass-at-k.ts";
import { COMMAND } from "../../local/package-root.ts";
import { usageError } from "../exit.ts";
import type { GateResult } from "./gates.ts";

/** Characters of a rollout's last message in a failed case. */
const QUOTED_CHARACTERS = 2000;

export async function writeJunit(
  file: string,
  run: RunView,
  rows: AsyncIterable<ResultRow>,
  judged: { readonly gates: readonly GateResult[]; readonly metric: string | null },
): Promise<void> {
  const cases = await taskCases(run, rows, judged.metric);
  const lines = Readable.from(report(run, cases, judged.gates));
  try {
    await pipeline(lines, createWriteStream(file));
  } catch (error) {
    throw usageError(`--junit: ${error instanceof Error ? error.message : error}`, "junit");
  }
}

type Kind = "passed" | "failure" | "error" | "skipped";

interface Case {
  readonly name: string;
  readonly kind: Kind;
  readonly seconds: number;
  readonly message: string;
  readonly text: string;
}

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

  case(): Case {
    const mean = this.#scored === 0 ? null : this.#sum / this.#scored;
    const kind = mean === null ? this.#unscoredKind() : mean < PASS_THRESHOLD ? "failure" : "passed";
    const about = { name: `example ${this.#example}`, kind, seconds: this.#seconds };
    if (kind === "passed" || this.#bad === null) return { ...about, message: "", text: "" };
    const of = `${this.#scored} of ${this.#rollouts} rollouts scored`;
    const message =
      mean === null
        ? `${whyNot(this.#bad.row)} (${of})`
        : `${this.#metric ?? "reward"} ${mean.toFixed(3)} is under ${PASS_THRESHOLD} (${of})`;
    return { ...about, message, text: explanation(this.#bad.row) };
  }

  #unscoredKind(): Kind {
    return this.#bad?.row.outcome === "cancelled" ? "skipped" : "error";
  }
}

function rank({ outcome }: ResultRow, value: number | null): number {
  if (value !== null) return value < PASS_THRESHOLD ? 4 : 0;
  return { scored: 1, unscored: 3, failed: 2, cancelled: 1 }[outcome];
}

/** One case per task, in the run's order. A task without an ended rollout was never started. */
async function taskCases(run: RunView, rows: AsyncIterable<ResultRow>, metric: string | null): Promise<Case[]> {
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

function notBegun(group: number): Case {
  const message = "the run ended before it";
  return { name: `task ${group}`, kind: "skipped", seconds: 0, message, text: "" };
}

function whyNot(row: ResultRow): string {
  const [scoring] = row.scoring_errors;
  const error = row.error?.message ?? scoring?.error ?? "no score";
  return `${row.outcome}${row.reason === null ? "" : ` (${row.reason})`}: ${error}`;
}

function explanation(row: ResultRow): string {
  const last = z.array(Message).safeParse(row.completion.slice(-1)).data?.[0];
  const said = last === undefined ? "" : textOf(last);
  const cut = said.length > QUOTED_CHARACTERS ? `${said.slice(0, QUOTED_CHARACTERS)} …` : said;
  return [`${COMMAND} rollout show ${row.rollout_id}`, cut].filter((part) => part !== "").join("\n\n");
}

function* report(run: RunView, cases: readonly Case[], gates: readonly GateResult[]): Generator<string> {
  const name = `${run.environment.id}@${run.environment.version}`;
  const all = [...cases, ...gates.map(gateCase)];
  yield '<?xml version="1.0" encoding="UTF-8"?>\n';
  // Jenkins' schema allows `skipped` on a suite, but not on all suites together.
  const { skipped: _, ...ofAll } = totals(all);
  yield `<testsuites ${attributes({ name: `rollcall ${run.id}`, ...ofAll })}>\n`;
  yield* suite(name, cases, run);
  if (gates.length > 0) yield* suite("gates", gates.map(gateCase), run);
  yield "</testsuites>\n";
}

function gateCase({ gate, verdict, message }: GateResult): Case {
  const kind = ({ passed: "passed", failed: "failure", inconclusive: "error" } as const)[verdict];
  return { name: gate, kind, seconds: 0, message, text: "" };
}

function* suite(name: string, cases: readonly Case[], run: RunView): Generator<string> {
  const timestamp = new Date(run.created_at * 1000).toISOString().slice(0, 19);
  yield `  <testsuite ${attributes({ name, timestamp, ...totals(cases) })}>\n`;
  if (run.max_reward !== undefined) {
    const property = attributes({ name: "max_reward", value: String(run.max_reward) });
    yield `    <properties><property ${property}/></properties>\n`;
  }
  for (const one of cases) {
    const head = attributes({ classname: name, name: one.name, time: one.seconds.toFixed(3) });
    if (one.kind === "passed") yield `    <testcase ${head}/>\n`;
    else {
      const why = attributes({ message: one.message });
      yield `    <testcase ${head}><${one.kind} ${why}>${escaped(one.text)}</${one.kind}></testcase>\n`;
    }
  }
  yield "  </testsuite>\n";
}

function totals(cases: readonly Case[]) {
  const count = (kind: Kind) => String(cases.filter((one) => one.kind === kind).length);
  const seconds = cases.reduce((sum, one) => sum + one.seconds, 0);
  return {
    tests: String(cases.length),
    failures: count("failure"),
    errors: count("error"),
    skipped: count("skipped"),
    time: seconds.toFixed(3),
  };
}

function attributes(values: Readonly<Record<string, string>>): string {
  return Object.entries(values)
    .map(([name, value]) => `${name}="${escaped(value).replaceAll("\n", "&#10;")}"`)
    .join(" ");
}

/** All characters outside the Char production of XML 1.0. */
const NO_CHARACTERS = /[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/gu;
const ESCAPES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "\t": "&#9;",
  "\r": "&#13;",
};

function escaped(text: string): string {
  return text
    .toWellFormed()
    .replace(NO_CHARACTERS, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`)
    .replace(/[&<>"\t\r]/g, (character) => ESCAPES[character] ?? "");
}
