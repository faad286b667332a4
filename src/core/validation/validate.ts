/**
 * Validates an environment before any model uses it: plays simple policies on its first rows, and reports the
 * results as checks.
 *
 * Invariants. A validation never throws because of the environment; every fault is a check. The same environment and
 * rows give the same validation, unless the environment itself is random.
 */

import type { SerializedError } from "../../contract/errors.ts";
import type { EnvironmentDescription } from "../protocol/environment-code.ts";
import type { RolloutReport } from "../rollout/play.ts";
import type { JudgeBench, PlayedJudgement } from "./judgements.ts";
import {
  benchOf,
  type Play,
  playAll,
  type ReadRows,
  readRows,
  type Stage,
  UnfinishedError,
  unsteadyResets,
} from "./plays.ts";
import { POLICIES, type PolicyName } from "./policies.ts";

export interface ValidationOptions {
  /** Number of rows to play, from the first on. */
  readonly examples: number;
  /** The rows of a dataset whose rows come with the run; not read for others. */
  readonly uploaded: readonly unknown[];
  /** A sentence for each need that cannot be met here. If there are any, nothing is played, which is an error. */
  readonly unmet: readonly string[];
  /** The same for needs that this kind of validation never provides. Nothing is played either, but this is not an error. */
  readonly withheld?: readonly string[];
}

export interface Validation {
  /** Rows played. */
  readonly examples: number;
  readonly checks: readonly Check[];
  /** Mean reward of each policy's plays with a reward, null if there are none, and their number. */
  readonly policies: Readonly<Record<PolicyName, { mean: number | null; n: number }>>;
  /** The least and the greatest reward of a play; null if none has one. */
  readonly rewards: { readonly least: number; readonly most: number } | null;
  /** The share of the rows whose plays all have the same reward, from 0 to 1; null if no row has two such plays. */
  readonly equal_rows: number | null;
  /** The reward functions that gave no score: how often, and the first error. */
  readonly failed_functions: readonly FailedFunction[];
  /** Whether a second instance gives the same rows, states and rewards; null if nothing shows it. */
  readonly deterministic: boolean | null;
  /** What each judgement of a judge gives. */
  readonly judgements: readonly PlayedJudgement[];
  /** `faulty`: a check is an error. `unchecked`: no check is an error, and something could not be checked. */
  readonly result: "ready" | "unchecked" | "faulty";
  /** True if no check is an error. */
  readonly ok: boolean;
}

const PLAYED_CHECKS = ["tools", "reset", "rollouts", "restarts", "rewards", "variety", "gold"] as const;
const COMPARISONS: readonly string[] = ["reset", "restarts"];

export interface FailedFunction {
  readonly name: string;
  readonly count: number;
  readonly first: string;
}

export async function validateEnvironment(
  stage: Stage,
  { examples: count, uploaded, unmet, withheld = [] }: ValidationOptions,
): Promise<Validation> {
  const { description } = stage.code;
  const rows = await readRows(stage.code, count, uploaded);
  const playable = unmet.length + withheld.length === 0 ? rows.examples : [];
  const plays: Play[] = [];
  const bench = benchOf(stage);
  const checks = [checkNeeds(description, unmet, withheld), checkRows(rows)];
  try {
    for await (const play of playAll(stage, playable, bench)) plays.push(play);
    const resets = await unsteadyResets(stage, playable, uploaded);
    checks.push(...playedChecks(stage, resets, plays, withheld), ...checkJudges(stage, bench, plays));
    checks.push(...checkTeardown([...(await stage.code.tearDown()), ...(await stage.secondInstance.tearDown())]));
  } catch (thrown) {
    if (!(thrown instanceof UnfinishedError)) throw thrown;
    checks.push(...playedChecks(stage, null, plays, withheld), ...checkJudges(stage, bench, plays));
    checks.push(bad("finished", [thrown.message]));
  }
  return validationOf(playable.length, checks, plays, bench.findings(false).played);
}

/** The validation of an environment that could not be played completely. `name`: the check with the reason. */
export function unplayed(name: "build" | "rollouts" | "finished", message: string): Validation {
  return validationOf(0, [bad(name, [message])], []);
}

/** The result of a validation with these checks. */
export function resultOf(checks: readonly Check[]): Pick<Validation, "result" | "ok"> {
  const ok = checks.every(({ status }) => status !== "error");
  if (!ok) return { result: "faulty", ok };
  return { result: checks.some(({ status }) => status === "unchecked") ? "unchecked" : "ready", ok };
}

function validationOf(
  examples: number,
  checks: readonly Check[],
  plays: readonly Play[],
  judgements: readonly PlayedJudgement[] = [],
): Validation {
  const rewards = possibleRewardsOf(plays);
  return {
    examples,
    checks,
    policies: Object.fromEntries(POLICIES.map((policy) => [policy, summary(plays, policy)])) as Validation["policies"],
    rewards: rewards.length === 0 ? null : { least: Math.min(...rewards), most: Math.max(...rewards) },
    equal_rows: shareOfEqualRows(plays),
    failed_functions: failedFunctions(plays),
    deterministic: isDeterministic(checks),
    judgements,
    ...resultOf(checks),
  };
}

/** `resets`: null if they were not compared. */
function playedChecks(
  { code, goldPolicy }: Stage,
  resets: readonly string[] | null,
  plays: readonly Play[],
  withheld: readonly string[],
): Check[] {
  if (plays.length === 0) {
    const why = ["nothing was played", ...withheld.slice(0, 1)].join(": ");
    return PLAYED_CHECKS.map((name) => skipped(name, why));
  }
  const gold = plays.filter(({ policy }) => policy === "gold");
  const goldIsSure = isGoldSure({ goldPolicy }, plays);
  return [
    checkTools(plays),
    resets === null ? skipped("reset", "the instances were not compared") : checkReset(resets),
    checkRollouts(plays),
    checkRestarts(plays),
    checkRewards(plays),
    checkVariety(code.description, plays, goldIsSure, goldPolicy),
    checkGold(code.description, gold, goldIsSure, goldPolicy),
    ...checkMaximum(code.description, plays),
  ];
}

/** Whether gold plays should get the full score. */
function isGoldSure({ goldPolicy }: Pick<Stage, "goldPolicy">, plays: readonly Play[]): boolean {
  const gold = plays.filter(({ policy }) => policy === "gold");
  return gold.length > 0 && goldPolicy !== "unknown" && (goldPolicy !== null || gold.every(answerIsEnough));
}

/** Whether a reply with only the answer should get the full score: not if it needs tools or several turns. */
function answerIsEnough({ tools, isSingleTurn }: Play): boolean {
  return tools.length === 0 && isSingleTurn;
}

function summary(plays: readonly Play[], policy: PolicyName): { mean: number | null; n: number } {
  const rewards = rewardsOf(plays.filter((play) => play.policy === policy));
  const mean = rewards.length === 0 ? null : rewards.reduce((a, b) => a + b, 0) / rewards.length;
  return { mean, n: rewards.length };
}

function shareOfEqualRows(plays: readonly Play[]): number | null {
  const rows = [...Map.groupBy(plays, ({ example }) => example).values()].map(possibleRewardsOf);
  const compared = rows.filter((rewards) => rewards.length > 1);
  const equal = compared.filter((rewards) => Math.max(...rewards) - Math.min(...rewards) <= TOLERANCE);
  return compared.length === 0 ? null : equal.length / compared.length;
}

function failedFunctions(plays: readonly Play[]): FailedFunction[] {
  const failures = Map.groupBy(plays.flatMap(failuresOf), (failure) => failure.function);
  return [...failures].map(([name, all]) => ({ name, count: all.length, first: all[0]?.error ?? "" }));
}

/** The second instance makes every row again, plays half of each restarted play, and scores it. */
function isDeterministic(checks: readonly Check[]): boolean | null {
  const compared = checks.filter(({ name, status }) => COMPARISONS.includes(name) && status !== "skipped");
  return compared.length < COMPARISONS.length ? null : compared.every(({ status }) => status === "ok");
}

/**
 * A result of a validation. Each check examines one aspect of the plays, and has what was found and, unless all is
 * well, what to do.
 */
export interface Check {
  readonly name: string;
  /** `unchecked`: it could not be checked. `skipped`: there is nothing to check, or nothing was played. */
  readonly status: "ok" | "warning" | "error" | "unchecked" | "skipped";
  readonly message: string;
}

/** Rewards with a smaller difference are equal; sums of weights are seldom exact. */
const TOLERANCE = 1e-9;

function checkNeeds(
  { needs, judges }: EnvironmentDescription,
  unmet: readonly string[],
  withheld: readonly string[],
): Check {
  if (unmet.length > 0) return bad("needs", unmet);
  if (withheld.length > 0) return unchecked("needs", withheld);
  const listed = [...needs, ...judges.map((judge) => `the judge ${judge}`)];
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

function checkRewards(plays: readonly Play[]): Check {
  const faults = plays.flatMap((play) =>
    failuresOf(play).map((failure) => at(play, `${failure.function}: ${failure.error}`)),
  );
  if (faults.length > 0) return bad("rewards", faults);
  return ok("rewards", "every reward function gave a finite score");
}

/**
 * A rubric that gives every play the same reward is useless. But without a reliable gold play, the task may just be
 * hard, and every reward 0.
 */
function checkVariety(
  { scores }: EnvironmentDescription,
  plays: readonly Play[],
  goldIsSure: boolean,
  goldPolicy: Stage["goldPolicy"],
): Check {
  const rewards = possibleRewardsOf(plays);
  const [least, most] = [Math.min(...rewards), Math.max(...rewards)];
  if (rewards.length === 0) return skipped("variety", "no rollout has a reward");
  if (most - least > TOLERANCE) return ok("variety", `rewards go from ${text(least)} to ${text(most)}`);
  const found = `every play scores ${text(most)}`;
  if (!goldIsSure && Math.abs(most) <= TOLERANCE) {
    return warning("variety", [found], toExport(goldPolicy, "to show that a higher score is possible"));
  }
  if (scores.some((fn) => fn.group && fn.weight !== 0)) {
    const advice = "group rewards compare rollouts of one task, but here each task has one rollout";
    return warning("variety", [found], advice);
  }
  return bad("variety", [found], "the rubric must distinguish good rollouts from bad ones");
}

function toExport(goldPolicy: Stage["goldPolicy"], why: string): string {
  return goldPolicy === "unknown" ? "a goldPolicy is not played here" : `export goldPolicy(task) ${why}`;
}

/** Only listed if the environment declares a best reward. */
function checkMaximum({ maxReward = null }: EnvironmentDescription, plays: readonly Play[]): Check[] {
  if (maxReward === null) return [];
  const over = plays.flatMap((play) => {
    const most = Math.max(...possibleRewardsOf([play]));
    return most > maxReward + TOLERANCE ? at(play, `the reward is ${text(most)}, above maxReward, ${maxReward}`) : [];
  });
  return [over.length === 0 ? ok("maximum", `no reward is above ${maxReward}`) : bad("maximum", over)];
}

function checkGold(
  { maxReward = null }: EnvironmentDescription,
  gold: readonly Play[],
  goldIsSure: boolean,
  goldPolicy: Stage["goldPolicy"],
): Check {
  const scored = gold.flatMap((play) => {
    const reward = play.report?.reward ?? null;
    return reward === null ? [] : [{ play, reward }];
  });
  if (gold.length === 0) {
    return unchecked("gold", ["no row has an answer"], toExport(goldPolicy, "to play a correct rollout"));
  }
  if (scored.length === 0) return unchecked("gold", ["no gold play has a reward"]);
  const least = Math.min(1, maxReward ?? 1);
  const low = scored.filter(({ reward }) => reward < least - TOLERANCE);
  if (low.length === 0) return ok("gold", `every gold play scores ${least} or more`);
  const found = low.map(({ play, reward }) => at(play, `the reward is ${text(reward)}, below ${least}`));
  if (goldIsSure) {
    const unless = `or ${toExport(goldPolicy, "that answers in the form the rubric expects")}`;
    const advice = "correct the rubric, or the row's answer";
    return bad("gold", found, goldPolicy !== null ? advice : `${advice}, ${unless}`);
  }
  return warning("gold", found, `only the answer was sent: ${toExport(goldPolicy, "that plays the whole rollout")}`);
}

/** The tools that the plays offered: some environments find theirs during set-up. */
function checkTools(plays: readonly Play[]): Check {
  const toolDefinitions = [
    ...new Map(plays.flatMap(({ tools }) => tools).map((tool) => [tool.function.name, tool])).values(),
  ];
  if (toolDefinitions.length === 0) return skipped("tools", "it has none");
  const bare = toolDefinitions.filter((tool) => tool.function.description.trim() === "");
  const names = toolDefinitions.map((tool) => tool.function.name).join(", ");
  if (bare.length === 0) return ok("tools", `described: ${names}`);
  const found = bare.map((tool) => `${tool.function.name} has no description`);
  return warning("tools", found, "the model needs it to use the tool");
}

/** Only listed if the environment has judges and something was played. */
function checkJudges(stage: Stage, bench: JudgeBench, plays: readonly Play[]): Check[] {
  const { judges } = stage.code.description;
  if (judges.length === 0 || plays.length === 0) return [];
  const { played, faults, swallowed, unchecked: open } = bench.findings(isGoldSure(stage, plays));
  const asked = played.length === 0 ? skipped("judgements", "no judge was asked") : okJudgements(played.length);
  return [
    open.length === 0 ? ok("judges", `asked: ${judges.join(", ")}`) : unchecked("judges", open),
    faults.length === 0 ? asked : bad("judgements", faults),
    swallowed.length === 0
      ? ok("unjudged", "without a judgement there is no score")
      : warning("unjudged", swallowed, "a function must not catch the error of a judge"),
  ];
}

function okJudgements(count: number): Check {
  return ok("judgements", `${count} judgements were played`);
}

/** Only listed if something is wrong: most environments have no teardown. */
function checkTeardown(faults: readonly SerializedError[]): Check[] {
  const found = faults.map(({ message }) => message);
  return found.length === 0 ? [] : [bad("teardown", found)];
}

function skipped(name: string, message: string): Check {
  return { name, status: "skipped", message };
}

/** Something could not be checked, which is not the environment's fault. */
function unchecked(name: string, why: readonly string[], advice?: string): Check {
  return { ...bad(name, why, advice), status: "unchecked" };
}

function rewardsOf(plays: readonly Play[]): number[] {
  return plays.flatMap(({ report }) => report?.reward ?? []);
}

/** With those by other judgements. */
function possibleRewardsOf(plays: readonly Play[]): number[] {
  return plays.flatMap(({ report, judgedRewards }) => [report?.reward ?? [], ...judgedRewards].flat());
}

/** The functions of a play that gave no score. */
function failuresOf({ report }: Play): RolloutReport["scoring_errors"] {
  return report?.scoring_errors ?? [];
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
