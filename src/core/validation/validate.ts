/**
 * Tries an environment out before any model does: a right, an empty and a random policy on its first rows, in this
 * process, and what that shows about it.
 *
 * Invariants. A validation never throws for what the environment does; every fault is a check. The same environment and
 * rows give the same validation, as far as the environment itself is the same each time.
 */
import { tearDown } from "../environments/teardown.ts";
import {
  type Check,
  checkGold,
  checkNeeds,
  checkReset,
  checkRestarts,
  checkRewards,
  checkRollouts,
  checkRows,
  checkTeardown,
  checkTools,
  checkVariety,
  rewardsOf,
  skipped,
} from "./checks.ts";
import { type Play, playAll, type Stage } from "./plays.ts";
import { answerIsEnough, type PolicyName } from "./policies.ts";
import { unsteadyResets } from "./reset.ts";
import { type Example, readRows } from "./rows.ts";

export interface ValidationOptions {
  /** Rows to play, from the first on. */
  readonly examples: number;
  /** The rows of a dataset whose rows come with the run; not read for others. */
  readonly uploaded: readonly unknown[];
  /** A sentence for each need that cannot be met here. Then nothing is played. */
  readonly unmet: readonly string[];
}

export interface Validation {
  /** Rows played. */
  readonly examples: number;
  readonly checks: readonly Check[];
  /** Mean reward of each policy's plays that have one, null when none has, and how many have. */
  readonly policies: Readonly<Record<PolicyName, { mean: number | null; n: number }>>;
  /** No check is an error. */
  readonly ok: boolean;
}

const PLAYED_CHECKS = ["reset", "rollouts", "restarts", "rewards", "variety", "gold"] as const;

export async function validateEnvironment(
  stage: Stage,
  { examples: count, uploaded, unmet }: ValidationOptions,
): Promise<Validation> {
  const { environment } = stage;
  const rows = readRows(environment, count, uploaded);
  const playable = unmet.length === 0 ? rows.examples : [];
  const plays = await playAll(stage, playable);
  const checks = [
    checkNeeds(environment, unmet),
    checkRows(rows),
    checkTools(environment),
    ...(playable.length === 0
      ? PLAYED_CHECKS.map((name) => skipped(name, "nothing was played"))
      : await playedChecks(stage, playable, uploaded, plays)),
    ...checkTeardown([...(await tearDown(environment)), ...(await tearDown(stage.twin))]),
  ];
  return {
    examples: playable.length,
    checks,
    policies: {
      gold: summary(plays, "gold"),
      null: summary(plays, "null"),
      random: summary(plays, "random"),
    },
    ok: checks.every(({ status }) => status !== "error"),
  };
}

/** Of an environment that could not be played to the end. `name` is the check that says why. */
export function unplayed(name: "build" | "rollouts", message: string): Validation {
  const none = { mean: null, n: 0 };
  return {
    examples: 0,
    checks: [{ name, status: "error", message }],
    policies: { gold: none, null: none, random: none },
    ok: false,
  };
}

async function playedChecks(
  stage: Stage,
  examples: readonly Example[],
  uploaded: readonly unknown[],
  plays: readonly Play[],
): Promise<Check[]> {
  const { environment, goldPolicy } = stage;
  const played = plays.some(({ policy }) => policy === "gold");
  const goldIsSure = played && (goldPolicy !== null || answerIsEnough(environment));
  return [
    checkReset(await unsteadyResets(stage, examples, uploaded)),
    checkRollouts(plays),
    checkRestarts(plays),
    checkRewards(environment, plays),
    checkVariety(environment, plays, goldIsSure),
    checkGold(plays, goldIsSure, goldPolicy !== null),
  ];
}

function summary(plays: readonly Play[], policy: PolicyName): { mean: number | null; n: number } {
  const rewards = rewardsOf(plays.filter((play) => play.policy === policy));
  const mean = rewards.length === 0 ? null : rewards.reduce((a, b) => a + b, 0) / rewards.length;
  return { mean, n: rewards.length };
}
