/**
 * Scores a unit whose rubric asks judges: the functions run, what they asked for is got, and they run again, until nothing
 * is owed. Whoever gets the verdicts keeps them, so that being cut off costs none twice.
 */
import { LIMITS } from "../../contract/limits.ts";
import { type JudgeAsk, JudgeBench, type Judges, type Verdict } from "./judges.ts";
import type { ScoreRecord } from "./score.ts";

export interface Court {
  /** Verdicts there are, by key; those that `ask` gives are added. */
  readonly known: Map<string, Verdict>;
  /** Judges that may be asked. */
  readonly named: readonly string[];
  readonly hash: (text: string) => string;
  /** Verdicts for asks, by key. What is left out is not to be had now. */
  readonly ask: (owed: readonly JudgeAsk[]) => Promise<ReadonlyMap<string, Verdict>>;
}

export type JudgedScore =
  | { readonly kind: "scored"; readonly records: ScoreRecord[] }
  /** Without these verdicts there are no scores. */
  | { readonly kind: "owed"; readonly owed: readonly JudgeAsk[] };

/** The judges of one pass over `members` rollouts. */
export function newBench({ known, named, hash }: Omit<Court, "ask">, members: number): JudgeBench {
  return new JudgeBench({ known, named, hash, most: LIMITS.judgeAsksPerRollout * members });
}

/** `score`: one pass of the rubric over the unit's `members` rollouts. */
export async function scoreJudged(
  court: Court,
  members: number,
  score: (judges: Judges) => Promise<ScoreRecord[]>,
): Promise<JudgedScore> {
  for (;;) {
    const bench = newBench(court, members);
    const records = await score(bench);
    if (bench.owed.length === 0) return { kind: "scored", records };
    for (const [key, verdict] of await court.ask(bench.owed)) court.known.set(key, verdict);
    const owed = bench.owed.filter(({ key }) => !court.known.has(key));
    if (owed.length > 0) return { kind: "owed", owed };
  }
}
