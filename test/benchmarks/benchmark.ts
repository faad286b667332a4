/**
 * A benchmark whose scoring is held against reference code: generated answers, our score of each, and the named
 * differences from the reference. The reference's scores are recorded in `recorded/`, so that they are compared without
 * Python; `npm run test:benchmarks` computes them again (`reference.py`).
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { AnyEnvironment } from "rollcall";
import { runRollout, scripted } from "rollcall/testing";

export interface Answer {
  /** The rule that it is about. Deviations are named by kind. */
  readonly kind: string;
  /** The task row. */
  readonly row: Readonly<Record<string, unknown>>;
  readonly reply: string;
}

export interface Benchmark {
  readonly name: string;
  readonly answers: readonly Answer[];
  /** Our scores of an answer, by the names of the reference's scores. */
  readonly score: (answer: Answer) => Promise<Readonly<Record<string, boolean>>>;
  /** Kinds of answers that we score otherwise than the reference on purpose, and why; `score: kind`. */
  readonly deviations: Readonly<Record<string, string>>;
}

/** The reference's scores, in the order of the answers: `1` and `0` for each. */
export interface Recorded {
  /** Of all answers: other answers need other scores. */
  readonly sha256: string;
  /** The packages that computed them. */
  readonly packages: Readonly<Record<string, string>>;
  readonly scores: Readonly<Record<string, string>>;
}

export function recordedFile(name: string): string {
  return join(import.meta.dirname, "recorded", `${name}.json`);
}

export function readRecorded(name: string): Recorded {
  return JSON.parse(readFileSync(recordedFile(name), "utf8"));
}

export function digestOf(answers: readonly Answer[]): string {
  return createHash("sha256").update(JSON.stringify(answers)).digest("hex");
}

/** Every difference that has no name, and every name without a difference. */
export async function findDifferences(benchmark: Benchmark, { scores }: Recorded): Promise<string[]> {
  const unused = new Set(Object.keys(benchmark.deviations));
  const unnamed: string[] = [];
  for (const [at, answer] of benchmark.answers.entries()) {
    for (const [name, ours] of Object.entries(await benchmark.score(answer))) {
      const theirs = scores[name]?.[at];
      if (theirs === (ours ? "1" : "0")) continue;
      const deviation = `${name}: ${answer.kind}`;
      unused.delete(deviation);
      if (Object.hasOwn(benchmark.deviations, deviation)) continue;
      unnamed.push(`${deviation}: ours ${ours}, theirs ${theirs}: ${JSON.stringify(answer)}`);
    }
  }
  return [...unnamed, ...[...unused].map((deviation) => `no answer shows the deviation ${deviation}`)];
}

/** The scores of one reply, in an environment with one turn. */
export async function scoresOf(environment: AnyEnvironment, { row, reply }: Answer) {
  const report = await runRollout(environment, { task: row, model: scripted([reply]) });
  return { reward: report.reward, metrics: report.metrics };
}

/** Draws by a seed: the same answers on every machine. */
export class Draw {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  /** A whole number from `low` to `high`, both included. */
  whole(low: number, high: number): number {
    this.#state = (Math.imul(this.#state, 1_664_525) + 1_013_904_223) >>> 0;
    return low + Math.floor((this.#state / 2 ** 32) * (high - low + 1));
  }

  of<T>(items: readonly [T, ...T[]]): T {
    return items[this.whole(0, items.length - 1)] ?? items[0];
  }
}

/** `count` answers, each kind in turn. */
export function generate(
  count: number,
  seed: number,
  kinds: Readonly<Record<string, (draw: Draw) => Omit<Answer, "kind">>>,
): Answer[] {
  const draw = new Draw(seed);
  const makers = Object.entries(kinds);
  return Array.from({ length: count }, (_, at) => {
    const [kind, make] = makers[at % makers.length] ?? [];
    if (kind === undefined || make === undefined) throw new Error("no kinds of answers");
    return { kind, ...make(draw) };
  });
}
