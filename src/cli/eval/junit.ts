/**
 * Writes an eval as a JUnit report, which every build server reads: a test case for each task, and one for each gate.
 *
 * The file contains model output: every character that XML does not allow is shown as its code. The file is valid by
 * the schema of Jenkins' xUnit plugin, the strictest one in use.
 */

import { createWriteStream } from "node:fs";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { RunView } from "../../contract/run.ts";
import { COMMAND } from "../../local/package-root.ts";
import { usageError } from "../exit.ts";
import type { GateResult } from "./gates.ts";
import { NO_ROLLOUT, type TaskCase, type TaskVerdict } from "./task-cases.ts";

export async function writeJunit(
  file: string,
  run: RunView,
  cases: readonly TaskCase[],
  gates: readonly GateResult[],
): Promise<void> {
  const lines = Readable.from(report(run, cases, gates));
  try {
    await pipeline(lines, createWriteStream(file));
  } catch (error) {
    throw usageError(`--junit: ${error instanceof Error ? error.message : error}`, "junit");
  }
}

function* report(run: RunView, cases: readonly TaskCase[], gates: readonly GateResult[]): Generator<string> {
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

function gateCase({ gate, verdict, message }: GateResult): TaskCase {
  const kind = ({ passed: "passed", failed: "failure", inconclusive: "error" } as const)[verdict];
  return { name: gate, kind, seconds: 0, message, ...NO_ROLLOUT };
}

function* suite(name: string, cases: readonly TaskCase[], run: RunView): Generator<string> {
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
      yield `    <testcase ${head}><${one.kind} ${why}>${escaped(explanation(one))}</${one.kind}></testcase>\n`;
    }
  }
  yield "  </testsuite>\n";
}

function explanation({ rollout, reply }: TaskCase): string {
  const show = rollout === null ? "" : `${COMMAND} rollout show ${rollout}`;
  return [show, reply].filter((part) => part !== "").join("\n\n");
}

function totals(cases: readonly TaskCase[]) {
  const count = (kind: TaskVerdict) => String(cases.filter((one) => one.kind === kind).length);
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
