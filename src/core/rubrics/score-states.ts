/**
 * Scores states that were not made by a platform: for an author's tests of a rubric, with the platform's own functions.
 */

import type { Json } from "../../contract/json.ts";
import type { Messages } from "../../contract/messages.ts";
import { gateForScoring } from "../environments/capabilities.ts";
import { advantagesOf } from "../training/advantage.ts";
import { NO_JUDGES } from "./judges.ts";
import { type AnyRubric, RubricGroup } from "./rubric.ts";
import { creditOf, type StepCredit } from "./score.ts";
import {
  type AnyRewardArgs,
  type Scored,
  type ScoringContext,
  type ScoringFailure,
  scoreContexts,
  settle,
} from "./scoring.ts";

/** The parts of a finished rollout that the rubric reads. Functions write to this object itself. */
export interface StateToScore {
  readonly completion: Messages;
  readonly prompt?: Messages;
  readonly answer?: string;
  readonly info?: Json;
  readonly task?: unknown;
  readonly trajectory?: readonly Partial<StepCredit>[];
  /** Columns of its row, and the environment's own fields. */
  readonly [column: string]: unknown;
}

export interface ScoredState {
  readonly reward: number | null;
  /** Every score by name, rewards and metrics alike. */
  readonly metrics: Readonly<Record<string, number | null>>;
  readonly scoring_errors: readonly ScoringFailure[];
}

export interface ScoredMember extends ScoredState {
  readonly advantage: number | null;
  /** The reward and advantage of each step of its trajectory. */
  readonly steps: readonly StepCredit[];
}

/** Throws RangeError for a rubric that needs a whole group: use `scoreGroup`. */
export async function scoreState(rubric: AnyRubric | RubricGroup, state: StateToScore): Promise<ScoredState> {
  const rubrics = new RubricGroup([rubric]);
  if (rubrics.hasGroupFunctions) {
    throw new RangeError("a rubric with group functions scores whole groups: use scoreGroup");
  }
  const [scored] = await scoreAll(rubrics, [state]);
  if (scored === undefined) throw new RangeError("there is no state");
  return stateOf(scored);
}

/** Each member's scores, and its advantage over the group. */
export async function scoreGroup(
  rubric: AnyRubric | RubricGroup,
  states: readonly StateToScore[],
): Promise<ScoredMember[]> {
  const scored = await scoreAll(new RubricGroup([rubric]), states);
  const advantages = advantagesOf(
    { name: "mean" },
    scored.map(({ reward }) => reward),
  );
  return scored.map((one, at) => {
    const advantage = advantages[at] ?? null;
    const credit = { reward: one.reward, advantage };
    const steps = (states[at]?.trajectory ?? []).map((step) => creditOf(step, credit));
    return { ...stateOf(one), advantage, steps };
  });
}

async function scoreAll(rubrics: RubricGroup, states: readonly StateToScore[]): Promise<readonly Scored[]> {
  const contexts = states.map(contextOf);
  await scoreContexts(rubrics, contexts, {
    judges: NO_JUDGES,
    can: gateForScoring([], { now: () => 0 }),
  });
  return contexts.map(settle);
}

function stateOf({ reward, scores, scoring_errors }: Scored): ScoredState {
  const metrics = Object.fromEntries(scores.map(({ name, score }) => [name, score]));
  return { reward, metrics, scoring_errors };
}

type State = AnyRewardArgs["state"];

function contextOf(given: StateToScore, index: number): ScoringContext {
  const { prompt = [], answer = "", info = {}, task = null, trajectory = [] } = given;
  const turn = trajectory.length;
  const end = { is_truncated: false, stop_condition: null, error: null, usage: null };
  const ours = { prompt, answer, info, task, trajectory, turn, final_env_response: null };
  const state: Omit<State, "trajectory"> = Object.assign(given, { ...end, ...given }, ours);
  // The author's functions are responsible for the type of their own steps.
  return { rollout_id: `rollout_${index}`, columns: given, state: state as State, functionScores: [] };
}
