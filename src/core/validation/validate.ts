/**
 * Validates an environment before any model uses it: plays a gold, an empty and a random policy on its first rows, in
 * this process, and reports the results as checks.
 *
 * Invariants. A validation never throws because of the environment; every fault is a check. The same environment and
 * rows give the same validation, unless the environment itself is random.
 */

import type { SerializedError } from "../../contract/errors.ts";
import { type AnyEnvironment, tearDown } from "../environments/any-environment.ts";
import { type Example, type Play, playAll, type ReadRows, readRows, type Stage, unsteadyResets } from "./plays.ts";
import { answerIsEnough, type PolicyName } from "./policies.ts";

export interface ValidationOptions {
  /** Number of rows to play, from the first on. */
  readonly examples: number;
  /** The rows of a dataset whose rows come with the run; not read for others. */
  readonly uploaded: readonly unknown[];
  /** A sentence for each need that cannot be met here. If there are any, nothing is played. */
  readonly unmet: readonly string[];
}

export interface Validation {
  /** Rows played. */
  readonly examples: number;
  readonly checks: readonly Check[];
  /** Mean reward of each policy's plays with a reward, null if there are none, and their number. */
  readonly policies: Readonly<Record<PolicyName, { mean: number | null; n: number }>>;
  /** True if no check is an error. */
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
    ...checkTeardown([...(await tearDown(environment)), ...(await tearDown(stage.secondInstance))]),
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

/** The validation of an environment that could not be played completely. `name`: the check with the reason. */
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

/**
 * A result of a validation. Each check examines one aspect of the plays, and has what was found and, unless all is
 * well, what to do.
 */
export interface Check {
  readonly name: string;
  readonly status: "ok" | "warning" | "error" | "skipped";
  readonly message: string;
}

/** Rewards with a smaller difference are equal; sums of weights are seldom exact. */
const TOLERANCE = 1e-9;

function checkNeeds(environment: AnyEnvironment, unmet: readonly string[]): Check {
  if (unmet.length > 0) return bad("needs", unmet);
  const listed = [...environment.needs, ...environment.rubric.judges.map((judge) => `the judge ${judge}`)];
  return ok("needs", listed.length === 0 ? "no needs" : `needs ${listed.join(", ")}`);
}

function checkRows({ examples, faults }: ReadRows): Check {
  if (faults.length > 0) return bad("rows", faults);
  if (examples.length === 0) return bad("rows", ["the dataset is empty"]);
  return ok("rows", `${examples.length} fit the schema and are JSON`);
}

function checkReset(differences: readonly string[]): Check {
  if (differences.length === 0) return ok("reset", "the same seed gives the same rows and states");
  const advice = "use the `random` of the dataset and can.random(), not Math.random";
  return bad("reset", differences, `${advice} or Date`);
}

function checkRollouts(plays: readonly Play[]): Check {
  const faults = plays.flatMap((play) => {
    const { report } = play;
    const errors = report === null ? [] : [report.error, ...report.cleanup_errors];
    const said = errors.flatMap((error) => (error === null ? [] : `${error.error}: ${error.message}`));
    return [play.fault, ...said].flatMap((fault) => (fault === null ? [] : at(play, fault)));
  });
  if (faults.length > 0) return bad("rollouts", faults);
  return ok("rollouts", `${plays.length} rollouts ended, and no hook failed`);
}

function checkRestarts(plays: readonly Play[]): Check {
  const lost = plays.flatMap((play) => (play.restarted === null ? [] : at(play, play.restarted)));
  if (lost.length > 0) {
    const advice = "keep persistent values in the state, and open handles in openLive";
    return bad("restarts", lost, advice);
  }
  const unsteady = plays.flatMap((play) => (play.unsteady === null ? [] : at(play, play.unsteady)));
  if (unsteady.length > 0) {
    const advice =
      "every play differs, so restarts cannot be checked; " +
      "keep persistent values in the state, and use can.random()";
    return warning("restarts", unsteady, advice);
  }
  return ok("restarts", "a restart after every step changes nothing");
}

/** A validation asks no judges, so missing scores of judges are not faults. */
function checkRewards(environment: AnyEnvironment, plays: readonly Play[]): Check {
  const judged = new Set(
    environment.rubric.rubrics
      .filter((rubric) => rubric.judges.length > 0)
      .flatMap((rubric) => rubric.functions.map((fn) => fn.name)),
  );
  const faults = plays.flatMap((play) =>
    (play.report?.scoring_errors ?? [])
      .filter((failure) => !judged.has(failure.function))
      .map((failure) => at(play, `${failure.function}: ${failure.error}`)),
  );
  if (faults.length > 0) return bad("rewards", faults);
  return ok("rewards", "every reward function gave a finite score");
}

/**
 * A rubric that gives every play the same reward is useless. But without a reliable gold play, the task may just be
 * hard, and every reward 0.
 */
function checkVariety({ rubric }: AnyEnvironment, plays: readonly Play[], goldIsSure: boolean): Check {
  const rewards = rewardsOf(plays);
  const [least, most] = [Math.min(...rewards), Math.max(...rewards)];
  if (rewards.length === 0) return skipped("variety", "no rollout has a reward");
  if (most - least > TOLERANCE) return ok("variety", `rewards go from ${text(least)} to ${text(most)}`);
  const found = `every play scores ${text(most)}`;
  if (!goldIsSure && Math.abs(most) <= TOLERANCE) {
    const advice = "export goldPolicy(task) to show that a higher score is possible";
    return warning("variety", [found], advice);
  }
  const functions = rubric.rubrics.flatMap((one) => one.functions);
  if (functions.some((fn) => fn.group && fn.weight !== 0)) {
    const advice = "group rewards compare rollouts of one task, but here each task has one rollout";
    return warning("variety", [found], advice);
  }
  return bad("variety", [found], "the rubric must distinguish good rollouts from bad ones");
}

/** `exported`: the gold plays use the author's own policy. */
function checkGold(plays: readonly Play[], goldIsSure: boolean, exported: boolean): Check {
  const gold = plays.filter(({ policy }) => policy === "gold");
  const scored = gold.flatMap((play) => {
    const reward = play.report?.reward ?? null;
    return reward === null ? [] : [{ play, reward }];
  });
  if (gold.length === 0) {
    return skipped("gold", "no row has an answer; export goldPolicy(task) to play a correct rollout");
  }
  if (scored.length === 0) return skipped("gold", "no gold play has a reward");
  const low = scored.filter(({ reward }) => reward < 1 - TOLERANCE);
  if (low.length === 0) return ok("gold", "every gold play scores 1 or more");
  const found = low.map(({ play, reward }) => at(play, `the reward is ${text(reward)}, below 1`));
  if (goldIsSure) {
    const unless = "or export goldPolicy(task) that answers in the form the rubric expects";
    const advice = "correct the rubric, or the row's answer";
    return bad("gold", found, exported ? advice : `${advice}, ${unless}`);
  }
  const advice = "only the answer was sent: export goldPolicy(task) that plays the whole rollout";
  return warning("gold", found, advice);
}

function checkTools({ players }: AnyEnvironment): Check {
  const toolDefinitions = players.flatMap((player) => player.toolDefinitions);
  if (toolDefinitions.length === 0) return skipped("tools", "it has none");
  const bare = toolDefinitions.filter((tool) => tool.function.description.trim() === "");
  const names = toolDefinitions.map((tool) => tool.function.name).join(", ");
  if (bare.length === 0) return ok("tools", `described: ${names}`);
  const found = bare.map((tool) => `${tool.function.name} has no description`);
  return warning("tools", found, "the model needs it to use the tool");
}

/** Only listed if something is wrong: most environments have no teardown. */
function checkTeardown(faults: readonly SerializedError[]): Check[] {
  const found = faults.map(({ message }) => message);
  return found.length === 0 ? [] : [bad("teardown", found)];
}

function skipped(name: string, message: string): Check {
  return { name, status: "skipped", message };
}

function rewardsOf(plays: readonly Play[]): number[] {
  return plays.flatMap(({ report }) => report?.reward ?? []);
}

function ok(name: string, message: string): Check {
  return { name, status: "ok", message };
}

/** A failed check: the first fault, the number of others, and what to do. */
function bad(name: string, [first = "", ...more]: readonly string[], advice?: string): Check {
  const rest = more.length === 0 ? "" : ` (and ${more.length} more)`;
  const message = `${first}${rest}${advice === undefined ? "" : `; ${advice}`}`;
  return { name, status: "error", message };
}

function warning(name: string, faults: readonly string[], advice: string): Check {
  return { ...bad(name, faults, advice), status: "warning" };
}

function at({ example, policy }: Play, fault: string): string {
  return `row ${example}, ${policy} play: ${fault}`;
}

function text(reward: number): string {
  return String(Math.round(reward * 1000) / 1000);
}
