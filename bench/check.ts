/**
 * Compares results for --check: how many times the bare loop's work a rollout costs, against the recorded ratio. Both
 * sides are measured in one session, so no figure depends on another machine. Instruction counts are the same
 * everywhere. CPU time replaces them if they cannot be counted, and is comparable only on the kind of processor it was
 * recorded on.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod";
import { EXIT, type ExitCode } from "../src/cli/exit.ts";
import type { Row } from "./row.ts";

const FILE = join(import.meta.dirname, "recorded.json");
/** A ratio may be worse than the recorded one by this share. */
const TOLERANCE = 0.05;

const Ratio = z.object({ ratio: z.number(), date: z.string(), cpu: z.string() });
const Recorded = z.object({ instructions: Ratio.nullable(), cpu_time: Ratio.nullable() });
export type Recorded = z.infer<typeof Recorded>;
type Measure = keyof Recorded;

export interface Verdict {
  readonly exit: ExitCode;
  readonly measure: Measure;
  readonly ratio: number;
  /** Null if nothing comparable is recorded. */
  readonly recorded: number | null;
  readonly summary: string;
}

export function readRecorded(): Recorded {
  return Recorded.parse(JSON.parse(readFileSync(FILE, "utf8")));
}

/** `cpu`: the processor's name. */
export function compare(row: Row, recorded: Recorded, cpu: string): Verdict {
  const { measure, ratio } = ratioOf(row);
  const what = `${measure.replace("_", " ")} of workerd ÷ of the bare loop: ${ratio}`;
  const before = recorded[measure];
  if (before === null) {
    return { exit: EXIT.inconclusive, measure, ratio, recorded: null, summary: `${what}; none is recorded (--record)` };
  }
  if (measure === "cpu_time" && before.cpu !== cpu) {
    const summary = `${what}; the recorded one is of another processor (${before.cpu})`;
    return { exit: EXIT.inconclusive, measure, ratio, recorded: null, summary };
  }
  const worse = ratio / before.ratio - 1;
  const exit = worse > TOLERANCE ? EXIT.bad : EXIT.good;
  const change = `${(100 * Math.abs(worse)).toFixed(1)} % ${worse > 0 ? "worse" : "better"}`;
  const summary = `${what}, recorded ${before.ratio} (${before.date}): ${change}, where ${100 * TOLERANCE} % worse is allowed`;
  return { exit, measure, ratio, recorded: before.ratio, summary };
}

/** Records the row's ratio for later checks, next to the record of the other measure. */
export function record(row: Row, cpu: string, date: Date): void {
  const { measure, ratio } = ratioOf(row);
  const recorded = { ...readRecorded(), [measure]: { ratio, date: date.toISOString().slice(0, 10), cpu } };
  writeFileSync(FILE, `${JSON.stringify(recorded, null, 2)}\n`);
}

function ratioOf({ instructions_m_per_rollout: counted, cpu_ratio }: Row): { measure: Measure; ratio: number } {
  return counted === null
    ? { measure: "cpu_time", ratio: cpu_ratio }
    : { measure: "instructions", ratio: counted.ratio };
}
