/**
 * Scores one unit: a rollout, or all members of a group.
 *
 * Invariants. A failed or cancelled member is not scored and no function sees it. The functions of one rollout run one
 * after another, in the rubric's order, on one mutable copy of the final state: a later one reads what an earlier one
 * wrote. A score that was not produced is null with its error, and then so is the reward, if the function has weight. A
 * group function that throws or returns too few scores is void for the whole group.
 */

import type { ScoringArgs } from "./environments/contract.ts";
import { serializeError, type UnscoredCause } from "./errors.ts";
import { cloneJson, deepFreeze } from "./json.ts";
import { Parser } from "./parsers/parser.ts";
import type { AnyRubric, ScoreFunction } from "./rubrics/rubric.ts";
import type { RubricGroup } from "./rubrics/rubric-group.ts";
import { causeOf, NoScoreError, toScore } from "./rubrics/score-value.ts";
import { type Trajectory, unpackTurns } from "./trajectory.ts";

export interface ScoringFailure {
  /** The score's name; `reward` when the sum itself is not finite. */
  readonly function: string;
  readonly error: string;
  readonly retryable: boolean;
}

export interface ScoreRecord {
  readonly rollout_id: string;
  readonly reward: number | null;
  /** One entry a name. Functions of one name: within a rubric the last one's score, across rubrics the sum. */
  readonly scores: readonly {
    readonly name: string;
    readonly score: number | null;
    readonly weight: number;
  }[];
  readonly scoring_errors: readonly ScoringFailure[];
  /** Why a rollout that ended well has no reward. */
  readonly unscored: UnscoredCause | null;
}

/** What scoring needs of an environment. */
export interface Scorable {
  readonly rubric: RubricGroup;
  readonly parser?: Parser | undefined;
}

type Args = ScoringArgs<unknown, unknown>;
type Outcome = { readonly score: number } | { readonly score: null; readonly thrown: unknown };
type Verdict = Outcome & {
  readonly name: string;
  readonly weight: number;
  readonly rubric: number;
};

interface Sheet {
  readonly member: Trajectory;
  readonly state: Args["state"];
  readonly verdicts: Verdict[];
}

/** A record for each member, in their order. Never throws for what a scoring function does. */
export async function scoreUnit(
  environment: Scorable,
  members: readonly Trajectory[],
): Promise<ScoreRecord[]> {
  const sheets = members.map((member) => (endedWell(member) ? newSheet(member) : null));
  const open = sheets.filter((sheet) => sheet !== null);
  for (const [index, rubric] of environment.rubric.rubrics.entries()) {
    await scoreRubric(rubric, index, environment.parser, open);
  }
  return members.map((member, at) => {
    const sheet = sheets[at];
    return sheet ? settle(sheet) : notScored(member);
  });
}

async function scoreRubric(
  rubric: AnyRubric,
  index: number,
  fallback: Parser | undefined,
  sheets: readonly Sheet[],
): Promise<void> {
  const parser = rubric.parser ?? fallback ?? new Parser();
  const args = sheets.map((sheet) => argsOf(sheet, parser));
  for (const fn of rubric.functions) {
    const outcomes = await ask(fn, args);
    for (const [at, sheet] of sheets.entries()) {
      const outcome = outcomes[at] ?? failed(new NoScoreError("scorer", "gave no score"));
      sheet.verdicts.push({ ...outcome, name: fn.name, weight: fn.weight, rubric: index });
    }
  }
}

function ask(fn: ScoreFunction, group: readonly Args[]): Promise<Outcome[]> {
  if (fn.group) return askGroup(fn, group);
  return Promise.all(group.map((args) => attempt(() => fn.score(args))));
}

async function askGroup(
  fn: ScoreFunction & { group: true },
  group: readonly Args[],
): Promise<Outcome[]> {
  if (group.length === 0) return [];
  try {
    const scores: unknown = await fn.score(group);
    if (!Array.isArray(scores) || scores.length < group.length) {
      const given = Array.isArray(scores) ? `${scores.length} scores` : "no list of scores";
      throw new NoScoreError("scorer", `returned ${given} for a group of ${group.length}`);
    }
    return await Promise.all(group.map((_, at) => attempt(() => scores[at])));
  } catch (thrown) {
    return group.map(() => failed(thrown));
  }
}

async function attempt(call: () => unknown): Promise<Outcome> {
  try {
    return { score: toScore(await call()) };
  } catch (thrown) {
    return failed(thrown);
  }
}

function failed(thrown: unknown): Outcome {
  return { score: null, thrown };
}

function settle(sheet: Sheet): ScoreRecord {
  const { member, verdicts } = sheet;
  const owed = verdicts.find((verdict) => verdict.score === null && verdict.weight !== 0);
  const sum = verdicts.reduce((total, { score, weight }) => total + (score ?? 0) * weight, 0);
  const overflown = !Number.isFinite(sum);
  const errors = verdicts.flatMap((verdict) =>
    verdict.score === null ? [failureOf(verdict.name, verdict.thrown)] : [],
  );
  if (overflown) errors.push(failureOf("reward", new NoScoreError("non_finite", `sums to ${sum}`)));
  const cause = owed?.score === null ? causeOf(owed.thrown) : overflown ? "non_finite" : null;
  return {
    rollout_id: member.rollout_id,
    reward: cause === null ? sum : null,
    scores: scoresByName(verdicts),
    scoring_errors: errors,
    unscored: cause,
  };
}

function scoresByName(verdicts: readonly Verdict[]): ScoreRecord["scores"] {
  const lastOfRubric = new Map(
    verdicts.map((verdict) => [JSON.stringify([verdict.rubric, verdict.name]), verdict]),
  );
  const byName = new Map<string, ScoreRecord["scores"][number]>();
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

function failureOf(name: string, thrown: unknown): ScoringFailure {
  const { error, message, retryable } = serializeError(thrown);
  return { function: name, error: `${error}: ${message}`, retryable };
}

function notScored({ rollout_id }: Trajectory): ScoreRecord {
  return { rollout_id, reward: null, scores: [], scoring_errors: [], unscored: null };
}

function endedWell(member: Trajectory): boolean {
  return member.error === null && member.cancelled === null;
}

function newSheet(member: Trajectory): Sheet {
  const state = {
    ...cloneJson(member.final_state),
    prompt: member.prompt,
    completion: member.completion,
    task: deepFreeze(member.task),
    answer: member.answer,
    info: member.info,
    trajectory: unpackTurns(member.initial_state, member.turns),
    turn: member.turns.length,
    final_env_response: member.final_env_response,
  };
  return { member, state, verdicts: [] };
}

function argsOf({ member, state }: Sheet, parser: Parser): Args {
  const { prompt, completion, answer, info, task } = member;
  return { prompt, completion, answer, info, task, state, parser };
}
