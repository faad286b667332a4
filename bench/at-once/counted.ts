/** What the platform counted and what the simulation counts, by the same names. */
import type { World } from "../simulate/world.ts";

/** Of counting-worker.ts. */
export type Counts = Readonly<Record<string, number>>;

/** By what is counted. */
export type Requests = Readonly<Record<string, number>>;

/** What requests read for their caller, and the isolate keeps. The simulation leaves it out. */
const OF_CALLERS = "http > d1 read (api_keys|organizations|projects|members|people)$";

const REPORTS = "rollout > run.answered";

/** Which counts of the platform belong together. An alarm is a request to its object. */
const PLATFORM: Readonly<Record<string, RegExp>> = {
  "requests to RunObject": /^(alarm > run|.* > run\.\w+)$/,
  "requests to RolloutObject": /^(alarm > rollout|.* > rollout\.\w+)$/,
  "requests to EndpointObject": / > endpoint\.\w+$/,
  "requests to AccountObject": / > account\.\w+$/,
  "messages to rollout-groups": /^consumer rollout-groups(-\d)? messages$/,
  "messages to rollout-scores": /^consumer rollout-scores(-\d)? messages$/,
  "messages to run-segments": /^consumer run-segments messages$/,
  "reads of D1": new RegExp(`^(?!${OF_CALLERS}).* > d1 read `),
  "writes of D1": / > d1 write /,
  "R2, class A": / > r2 class A$/,
  "R2, class B": / > r2 class B$/,
};

export function requestsOf(counts: Counts): Requests {
  return Object.fromEntries(Object.entries(PLATFORM).map(([what, name]) => [what, sumOf(counts, name)]));
}

export function sumOf(counts: Counts, name: RegExp): number {
  return Object.entries(counts).reduce((sum, [key, count]) => (name.test(key) ? sum + count : sum), 0);
}

/** Milliseconds of a read of D1 by an object that plays rollouts, on average. */
export function msOfSettings(counts: Counts): number {
  return (counts["rollout > d1: milliseconds"] ?? 0) / sumOf(counts, /^rollout > d1 read /);
}

/** Milliseconds of a report to the run's object, on average. All reports are sent after all rollouts were in flight. */
export function msOfReports(counts: Counts): number {
  return (counts[`${REPORTS}: milliseconds`] ?? 0) / (counts[REPORTS] ?? 0);
}

export function requestsIn({ traffic, queues }: World): Requests {
  const countedOf = (beginning: string) =>
    traffic.names(beginning).reduce((sum, name) => sum + traffic.counted(name), 0);
  const messages = queues.map(({ name }) => [`messages to ${name}`, countedOf(`messages ${name}`)] as const);
  return {
    "requests to RunObject": traffic.sum("run"),
    "requests to RolloutObject": traffic.sum("rollout"),
    "requests to EndpointObject": traffic.sum("endpoint"),
    "requests to AccountObject": traffic.sum("account"),
    ...Object.fromEntries(messages),
    "reads of D1": countedOf("d1 read") - traffic.counted("d1 read: keys of followers"),
    "writes of D1": countedOf("d1 write"),
    "R2, class A": traffic.counted("r2 class A"),
    "R2, class B": traffic.counted("r2 class B"),
  };
}

/** The ratio may differ from 1 by so much; small counts may differ by so many. */
const [TOLERANCE, FEW] = [0.2, 3];

export interface Compared {
  readonly what: string;
  readonly played: number;
  readonly simulated: number;
  /** Null if neither has any. */
  readonly ratio: number | null;
  readonly agrees: boolean;
}

export function compare(played: Requests, simulated: Requests): Compared[] {
  return Object.entries(played).map(([what, count]) => {
    const expected = simulated[what] ?? 0;
    const agrees = Math.abs(count - expected) <= Math.max(FEW, TOLERANCE * expected);
    return { what, played: count, simulated: expected, ratio: expected === 0 ? null : count / expected, agrees };
  });
}
