/**
 * Scores one scoring group: a rollout, or all members of a group.
 *
 * Invariants. A failed or cancelled member is not scored, and functions do not see it. The scores are computed in
 * rubrics/scoring.ts. Cleanup handlers of the rubrics run after scoring, on the state that the functions left; an error
 * in one is recorded among the scoring errors and removes no score.
 */
import { firstErrors, isError, messageOf, ScoringError } from "../../contract/errors.ts";
import { cloneJson, deepFreeze } from "../../contract/json.ts";
import { LIMITS } from "../../contract/limits.ts";
import { type CreditedTurn, type Trajectory, tokenUsage, unpackTurns } from "../../contract/trajectory.ts";
import type { Route } from "../environments/any-environment.ts";
import { gateForScoring, type OfferedForScoring } from "../environments/capabilities.ts";
import type { Need, RoutedRow } from "../environments/contract.ts";
import type { Parser } from "../parsers/parser.ts";
import {
  AskCollector,
  type AskCollectorOptions,
  type JudgeAsk,
  type JudgeResult,
  type Judges,
  NO_JUDGES,
} from "./judges.ts";
import type { RubricGroup } from "./rubric.ts";
import {
  failureOf,
  type Scored,
  type ScoringContext,
  type ScoringFailure,
  type ScoringTools,
  scoreContexts,
  settle,
} from "./scoring.ts";
import type { Work } from "./work.ts";

export interface ScoreRecord extends Scored {
  readonly rollout_id: string;
  /** The rewards and advantages of single turns, if scoring functions set them. */
  readonly steps?: readonly StepCredit[];
}

/** The parts of an environment that scoring needs. */
export interface Scorable {
  readonly rubric: RubricGroup;
  readonly parser?: Parser | undefined;
  readonly needs?: readonly Need[];
  /** False: nothing is scored, and every rollout that ended well has reward 0. */
  readonly scoreRollouts?: boolean;
  /** The environment whose rubric scores a row; if absent, this one. */
  route?(row: RoutedRow): Route;
}

export interface ScoringOffer {
  readonly judges?: Judges;
  /** The platform's capabilities; functions get those that the environment declared. */
  readonly capabilities?: OfferedForScoring;
  /** The work budget of all scores of the scoring group; if absent `WORK_LIMITS.scoringGroupSteps`. */
  readonly work?: Work;
  /** See `ScoringTools`. */
  readonly pause?: ScoringTools["pause"];
  /** Returns the result of `work`, or rejects when its time is over; if absent there is no time limit. */
  readonly limit?: ScoringLimit;
}
export type ScoringLimit = <T>(what: "scoring" | "cleanup", work: Promise<T>) => Promise<T>;

/** Returns a record per member, in their order. Never throws because of a scoring function. */
export async function scoreScoringGroup(
  environment: Scorable,
  members: readonly Trajectory[],
  offer: ScoringOffer = {},
): Promise<ScoreRecord[]> {
  const routes = routesOf(environment, members);
  if (routes instanceof Error) return members.map((member) => unscoredRecord(member, routes));
  const contexts = routes.map((route) => route && newScoringContext(route.member));
  const open = contexts.filter((context) => context !== null);
  const scored = await scoreOpen(scorerOf(environment, routes), open, offer);
  return members.map(({ rollout_id }, at) => {
    const context = contexts[at];
    if (!context) return { rollout_id, ...NOT_SCORED };
    return recordOf(rollout_id, context, scored.get(context) ?? NOT_SCORED);
  });
}

/** Functions may write anything to the state, including its trajectory, so reading it may throw. */
function recordOf(rollout_id: string, context: ScoringContext, scored: Scored): ScoreRecord {
  try {
    return storable({ rollout_id, ...scored, ...stepsOf(context) });
  } catch (thrown) {
    const message = `the credits of its turns cannot be read: ${messageOf(thrown)}`;
    const scoring_errors = [failureOf("rubric", new ScoringError(message))];
    return { rollout_id, ...NOT_SCORED, scoring_errors, unscored: "scorer" };
  }
}

/**
 * Voids by name what a function made too long to be stored: a record that cannot be stored would be computed again and
 * again.
 */
export function storable(record: ScoreRecord): ScoreRecord {
  const { rollout_id, scores, steps = [] } = record;
  const long = [
    { what: "the scores", value: scores, most: LIMITS.scoresCharacters },
    { what: "the credits of its turns", value: steps, most: LIMITS.stepsCharacters },
  ].find(({ value, most }) => JSON.stringify(value).length > most);
  if (long === undefined) return { ...record, scoring_errors: storableErrors(record) };
  const error = new ScoringError(`${long.what} are more than ${long.most} characters as JSON`);
  const scoring_errors = [failureOf("rubric", error)];
  return { rollout_id, ...NOT_SCORED, scoring_errors, unscored: "scorer" };
}

function storableErrors({ scoring_errors }: Scored): readonly ScoringFailure[] {
  return firstErrors(scoring_errors, (rest) =>
    failureOf("rubric", new ScoringError(`${rest} more functions or handlers failed`)),
  );
}

function stepsOf({ state }: ScoringContext): Pick<ScoreRecord, "steps"> {
  const steps = state.trajectory.map(({ reward, advantage }: CreditedTurn) => {
    return { reward: finite(reward), advantage: finite(advantage) };
  });
  const silent = steps.every(({ reward, advantage }) => reward === null && advantage === null);
  return silent ? {} : { steps };
}

function finite(worth: number | null | undefined): number | null {
  return Number.isFinite(worth) ? (worth ?? null) : null;
}

async function scoreOpen(
  environment: Scorable,
  contexts: readonly ScoringContext[],
  { judges = NO_JUDGES, capabilities = NOTHING, limit = unlimited, work, pause }: ScoringOffer,
): Promise<ReadonlyMap<ScoringContext, Scored>> {
  if (environment.scoreRollouts === false) return same(contexts, { ...NOT_SCORED, reward: 0 });
  const { rubric, parser, needs = [] } = environment;
  const tools: ScoringTools = {
    parser,
    judges,
    can: gateForScoring(needs, capabilities),
    ...(work && { work }),
    pause,
  };
  const scored = await inTime(contexts, limit("scoring", scoreContexts(rubric, contexts, tools)));
  // If a judgement is missing, these scores are void, and the group is scored again.
  if (judges.pending.length > 0) return scored;
  const faults = await cleanUp(rubric, contexts, limit);
  return new Map(
    [...scored].map(([context, { scoring_errors, ...rest }]) => {
      const noted = [...scoring_errors, ...(faults.get(context) ?? [])];
      return [context, { ...rest, scoring_errors: noted }];
    }),
  );
}

/** Returns no scores if the time ended first. */
async function inTime(contexts: readonly ScoringContext[], work: Promise<void>): Promise<Map<ScoringContext, Scored>> {
  try {
    await work;
    return new Map(contexts.map((context) => [context, settle(context)]));
  } catch (thrown) {
    const late = { scoring_errors: [failureOf("rubric", thrown)], unscored: "scorer" } as const;
    return same(contexts, { ...NOT_SCORED, ...late });
  }
}

/** The errors of the handlers, per member. */
async function cleanUp(
  { cleanupHandlers }: RubricGroup,
  contexts: readonly ScoringContext[],
  limit: ScoringLimit,
): Promise<Map<ScoringContext, ScoringFailure[]>> {
  const faults = new Map(contexts.map((context) => [context, [] as ScoringFailure[]]));
  const note = (context: ScoringContext, name: string, thrown: unknown) =>
    faults.get(context)?.push(failureOf(`cleanup.${name}`, thrown));
  const each = contexts.map(async (context) => {
    for (const { name, run } of cleanupHandlers) {
      try {
        await run(context.state);
      } catch (thrown) {
        note(context, name, thrown);
      }
    }
  });
  try {
    await limit("cleanup", Promise.all(each));
  } catch (thrown) {
    for (const context of contexts) note(context, "rubric", thrown);
  }
  return faults;
}

export const NOT_SCORED: Scored = { reward: null, scores: [], scoring_errors: [], unscored: null };

function same(contexts: readonly ScoringContext[], scored: Scored): Map<ScoringContext, Scored> {
  return new Map(contexts.map((context) => [context, scored]));
}

const unlimited: ScoringLimit = (_what, work) => work;

const NOTHING: OfferedForScoring = { now: () => 0 };

interface RoutedMember {
  readonly scorer: Scorable;
  readonly member: Trajectory;
}

/** For each member that ended well, the environment that played it and its row there. An error if a row has none. */
function routesOf(environment: Scorable, members: readonly Trajectory[]): (RoutedMember | null)[] | RangeError {
  try {
    const routes = members.map((member) => {
      return endedWell(member) ? routeMember(environment, member) : null;
    });
    const scorers = new Set(routes.flatMap((route) => route?.scorer ?? []));
    if (scorers.size <= 1) return routes;
    return new RangeError("the members of a scoring group are rows of different environments");
  } catch (thrown) {
    if (isError(thrown, RangeError)) return thrown;
    throw thrown;
  }
}

function routeMember(environment: Scorable, member: Trajectory): RoutedMember {
  if (environment.route === undefined) return { scorer: environment, member };
  const { environment: scorer, task, info } = environment.route(member);
  return { scorer, member: { ...member, task, info } };
}

/** The record of a rollout that could not be scored; one that failed is not scored in any case. */
export function unscoredRecord(member: Trajectory, error: Error): ScoreRecord {
  const { rollout_id } = member;
  if (!endedWell(member)) return { rollout_id, ...NOT_SCORED };
  const scoring_errors = [failureOf("rubric", error)];
  return { rollout_id, ...NOT_SCORED, scoring_errors, unscored: "scorer" };
}

/** The needs are those of the run's own environment: only these were declared to the platform. */
function scorerOf(environment: Scorable, routes: readonly (RoutedMember | null)[]): Scorable {
  const { scorer = environment } = routes.find((route) => route !== null) ?? {};
  const { rubric, parser, scoreRollouts = true } = scorer;
  const { needs = [] } = environment;
  return { rubric, parser, scoreRollouts, needs };
}

export function endedWell(member: Trajectory): boolean {
  return member.error === null && member.cancelled === null;
}

function newScoringContext(member: Trajectory): ScoringContext {
  const { rollout_id, prompt, completion, answer, info, final_env_response } = member;
  const { is_truncated, stop_condition, error } = member;
  const task = deepFreeze(member.task);
  const trajectory = unpackTurns(member.initial_state, member.turns);
  const turn = member.turns.length;
  const own = cloneJson(member.final_state);
  const end = { is_truncated, stop_condition, error, usage: tokenUsage(member.turns) };
  const said = { prompt, completion, answer, info, task, trajectory, turn, final_env_response };
  return { rollout_id, columns: task, state: { ...own, ...said, ...end }, functionScores: [] };
}

/** The reward and advantage of one step; null if not set. */
export interface StepCredit {
  readonly reward: number | null;
  readonly advantage: number | null;
}

/** A step's own numbers, or the rollout's if it has none. */
export function creditOf(step: Partial<StepCredit>, rollout: StepCredit): StepCredit {
  return {
    reward: step.reward ?? rollout.reward,
    advantage: step.advantage ?? rollout.advantage,
  };
}

/**
 * Scores a group whose rubric asks judges: the functions run, their questions are answered, and they run again, until
 * no question is pending. The caller stores judgements, so that an interruption does not pay for one twice.
 */
export interface JudgeCalls {
  /** Known judgements by key; those that `ask` returns are added. */
  readonly known: Record<string, JudgeResult>;
  /**
   * Returns judgements by key. One that is left out is not available now. Null: there was not enough memory to hold the
   * questions, and another pass makes them again. `characters`: their size.
   */
  readonly ask: (pending: readonly JudgeAsk[], characters: number) => Promise<ReadonlyMap<string, JudgeResult> | null>;
}

export type JudgedScore =
  | { readonly kind: "scored"; readonly records: ScoreRecord[] }
  /** These judgements are missing, so there are no scores. */
  | { readonly kind: "pending"; readonly pending: readonly JudgeAsk[] };

/** The result of one pass. */
export interface AskedScores {
  /** Void if questions are pending. */
  readonly records: ScoreRecord[];
  readonly pending: readonly JudgeAsk[];
  /** The size of the pending questions (UTF-16 units). */
  readonly characters: number;
}

/** One pass over a scoring group, which collects the questions to judges. `judges` null: they are not called. */
export async function scoreAsking(
  environment: Scorable,
  members: readonly Trajectory[],
  judges: Omit<AskCollectorOptions, "most"> | null,
  offer: Omit<ScoringOffer, "judges"> = {},
): Promise<AskedScores> {
  if (judges === null) {
    return { records: await scoreScoringGroup(environment, members, offer), pending: [], characters: 0 };
  }
  const asks = new AskCollector({ ...judges, most: LIMITS.judgeAsksPerRollout * members.length });
  const records = await scoreScoringGroup(environment, members, { ...offer, judges: asks });
  return { records, pending: asks.pending, characters: asks.characters };
}

/** `score`: one pass with these known judgements. */
export async function scoreJudged(
  { known, ask }: JudgeCalls,
  score: (known: JudgeCalls["known"]) => Promise<AskedScores>,
): Promise<JudgedScore> {
  for (;;) {
    const { records, pending: asked, characters } = await score(known);
    if (asked.length === 0) return { kind: "scored", records };
    const given = await ask(asked, characters);
    if (given === null) continue;
    for (const [key, judgement] of given) known[key] = judgement;
    const pending = asked.filter(({ key }) => !Object.hasOwn(known, key));
    if (pending.length > 0) return { kind: "pending", pending };
  }
}
