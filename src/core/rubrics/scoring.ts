/**
 * Runs the functions of rubrics over the members of one scoring group.
 *
 * Invariants. The functions of one rollout run one after another, in the rubric's order, on one mutable copy of the
 * final state: a later one reads what an earlier one wrote. Members are scored concurrently. A missing score is null
 * with its error, and then so is the reward, if the function has weight. A group function that throws, or gives one
 * member no usable score, is void for the whole group: its scores are only meaningful together. Nothing here throws
 * because of a scoring function. All built-in scorers of a scoring group share one work budget (core/rubrics/work.ts).
 */

import { serializeError, type UnscoredCause } from "../../contract/errors.ts";
import type { GroupArgs, RewardArgs, ScoringCapabilities } from "../environments/contract.ts";
import { Parser } from "../parsers/parser.ts";
import type { Judges } from "./judges.ts";
import type { AnyRubric, RubricGroup, ScoreFunction } from "./rubric.ts";
import { causeOf, NoScoreError, toScore } from "./score-value.ts";
import { scoringGroupWork, WORK, type Work } from "./work.ts";

export interface ScoringFailure {
  /** The score's name; `reward` if the sum itself is not finite, `cleanup` if a handler failed. */
  readonly function: string;
  readonly error: string;
  readonly retryable: boolean;
}

export interface Score {
  readonly name: string;
  readonly score: number | null;
  readonly weight: number;
}

/** The result of scoring one rollout. */
export interface Scored {
  readonly reward: number | null;
  /** One entry per name. If functions share it: within a rubric the last score, across rubrics the sum. */
  readonly scores: readonly Score[];
  readonly scoring_errors: readonly ScoringFailure[];
  /** Why there is no reward. */
  readonly unscored: UnscoredCause | null;
}

export type AnyRewardArgs = RewardArgs<unknown, unknown>;

/** One member of a scoring group during scoring. */
export interface ScoringContext {
  readonly rollout_id: string;
  /** Columns of its row: arguments by name, unless a library field has that name. */
  readonly columns: object;
  /** The state that all functions share and may write. */
  readonly state: AnyRewardArgs["state"];
  readonly functionScores: FunctionScore[];
}

/** The arguments of functions in addition to the rollout's. */
export interface ScoringTools {
  /** The environment's parser, for rubrics without one of their own. */
  readonly parser?: Parser | undefined;
  readonly judges: Judges;
  readonly can: ScoringCapabilities;
  /** The work budget of all scores together; if absent the default. */
  readonly work?: Work;
  /** Called with the promise of each function after its start, so that long scoring lets other work run in between. */
  readonly pause?: ((doing: Promise<unknown>) => Promise<void>) | undefined;
}

/** With the work budget of the built-in scorers for the whole group. */
type BudgetedTools = ScoringTools & { readonly work: Work };

type Outcome = { readonly score: number } | { readonly score: null; readonly thrown: unknown };
type FunctionScore = Outcome & {
  readonly name: string;
  readonly weight: number;
  readonly rubric: number;
};

/** Runs the functions, rubric by rubric, and fills the contexts. */
export async function scoreContexts(
  { rubrics }: RubricGroup,
  contexts: readonly ScoringContext[],
  tools: ScoringTools,
): Promise<void> {
  if (contexts.length === 0) return;
  const budgeted = { ...tools, work: tools.work ?? scoringGroupWork() };
  for (const [index, rubric] of rubrics.entries()) {
    for (const fn of rubric.functions) {
      const outcomes = await ask(fn, rubric, contexts, budgeted);
      for (const [at, context] of contexts.entries()) {
        const outcome = outcomes[at] ?? failure(new NoScoreError("scorer", "returned no score"));
        context.functionScores.push({ ...outcome, name: fn.name, weight: fn.weight, rubric: index });
      }
    }
  }
}

async function ask(
  fn: ScoreFunction,
  rubric: AnyRubric,
  contexts: readonly ScoringContext[],
  tools: BudgetedTools,
): Promise<Outcome[]> {
  if (fn.group) {
    const scored = askGroup(fn, rubric, contexts, tools);
    await tools.pause?.(scored);
    return await scored;
  }
  const outcomes: Promise<Outcome>[] = [];
  for (const context of contexts) {
    const outcome = attempt(async () => fn.score(await argsOf(context, rubric, tools)));
    outcomes.push(outcome);
    await tools.pause?.(outcome);
  }
  return await Promise.all(outcomes);
}

async function askGroup(
  fn: ScoreFunction & { group: true },
  rubric: AnyRubric,
  contexts: readonly ScoringContext[],
  tools: BudgetedTools,
): Promise<Outcome[]> {
  try {
    const group = await Promise.all(contexts.map((context) => argsOf(context, rubric, tools)));
    const scores: unknown = await fn.score(group, sharedArgs(rubric, tools));
    if (!Array.isArray(scores) || scores.length !== group.length) {
      const given = Array.isArray(scores) ? `${scores.length} scores` : "no list of scores";
      throw new NoScoreError("scorer", `returned ${given} for a group of ${group.length}`);
    }
    return group.map((_, at) => ({ score: toScore(scores[at]) }));
  } catch (thrown) {
    return contexts.map(() => failure(thrown));
  }
}

/** If two have the same name, the later one in this order is used: column, field, class object, task, score object. */
async function argsOf(
  { rollout_id, columns, state }: ScoringContext,
  rubric: AnyRubric,
  { parser, judges, can, work }: BudgetedTools,
): Promise<AnyRewardArgs> {
  const { prompt, completion, answer, info, task } = state;
  const args = {
    ...columns,
    ...{ prompt, completion, answer, info, state, rollout_id, can },
    judge: judges.of(rollout_id),
    parser: rubric.parser ?? parser ?? new Parser(),
    ...rubric.objects,
    task,
    [WORK]: work,
  };
  return { ...args, ...(await rubric.provided(args)) };
}

function sharedArgs(rubric: AnyRubric, { parser, judges, can }: ScoringTools): GroupArgs {
  const shared = { parser: rubric.parser ?? parser ?? new Parser(), can, judge: judges.of(null) };
  return { ...shared, ...rubric.objects };
}

async function attempt(call: () => unknown): Promise<Outcome> {
  try {
    return { score: toScore(await call()) };
  } catch (thrown) {
    return failure(thrown);
  }
}

function failure(thrown: unknown): Outcome {
  return { score: null, thrown };
}

/** The result from the scores of a member's functions. */
export function settle({ functionScores }: ScoringContext): Scored {
  const missing = functionScores.find((one) => one.score === null && one.weight !== 0);
  const sum = functionScores.reduce((total, { score, weight }) => total + (score ?? 0) * weight, 0);
  const overflown = !Number.isFinite(sum);
  const errors = functionScores.flatMap((one) => (one.score === null ? [failureOf(one.name, one.thrown)] : []));
  if (overflown) errors.push(failureOf("reward", new NoScoreError("non_finite", `sums to ${sum}`)));
  const cause = missing?.score === null ? causeOf(missing.thrown) : overflown ? "non_finite" : null;
  return {
    reward: cause === null ? sum : null,
    scores: scoresByName(functionScores),
    scoring_errors: errors,
    unscored: cause,
  };
}

function scoresByName(functionScores: readonly FunctionScore[]): Score[] {
  const lastOfRubric = new Map(functionScores.map((one) => [JSON.stringify([one.rubric, one.name]), one]));
  const byName = new Map<string, Score>();
  for (const { name, score, weight } of lastOfRubric.values()) {
    const other = byName.get(name);
    byName.set(name, {
      name,
      score: other === undefined ? score : addScores(other.score, score),
      weight: (other?.weight ?? 0) + weight,
    });
  }
  return [...byName.values()];
}

function addScores(a: number | null, b: number | null): number | null {
  return a === null || b === null ? null : a + b;
}

export function failureOf(name: string, thrown: unknown): ScoringFailure {
  const { error, message, retryable } = serializeError(thrown);
  return { function: name, error: `${error}: ${message}`, retryable };
}
