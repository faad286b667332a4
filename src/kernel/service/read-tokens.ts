/** The tokens of one turn, as its engine sent them and as training would use them. */
import { LIMITS } from "../../contract/limits.ts";
import type { Scope } from "../../contract/scope.ts";
import { isTrained, type StoredTurn, type TurnTokens } from "../../contract/trajectory.ts";
import type { TurnTokenPage } from "../../contract/turns.ts";
import { float32s, int32s } from "../../core/rollout/tokens.ts";
import { readTurn, type SamplingFacts, TrainableCheck } from "../../core/training/trainable.ts";
import { type Result, refuse } from "../messages/refusal.ts";
import { weightsOf } from "../scoring/group-samples.ts";
import type { TurnReader } from "../trajectory/read-turns.ts";
import { type Opened, withTurns } from "./open-turns.ts";
import { creditsOf, turnView } from "./read-rollouts.ts";
import { noTurn, turnIn } from "./read-turns.ts";

export interface TokensAsk {
  /** How many sampled ids, and how many ids of the prompt's suffix, to skip. */
  readonly after: number;
  readonly prompt_after: number;
  /** Maximum number of ids of each kind. */
  readonly limit: number;
}

/** Refuses with `conflict` if the turn has no token ids. */
export function readTurnTokens(
  env: Env,
  scope: Scope,
  id: string,
  number: string,
  ask: TokensAsk,
): Promise<Result<TurnTokenPage>> {
  return withTurns(env, scope, id, async (opened) => {
    const { reader, counted } = opened;
    const index = turnIn(reader, number);
    if (index === null || reader === null) return noTurn(id, number);
    const turn = await turnAt(reader, index);
    if (turn === null) return noTurn(id, number);
    const { tokens } = turn;
    if (tokens === null) return refuse("conflict", `turn ${number}: its engine sent no token ids`, "turn");
    const { index: _, completion: __, prompt, ...view } = turnView(turn, creditsOf(counted));
    const { policy_version, first_policy_version, dispatch_version, replica, replica_version } = view;
    const { untrainable, turns_checked } = await lookForCause(env, opened, reader, turn);
    const labels = { first_policy_version, dispatch_version, replica, replica_version };
    return {
      ok: true,
      value: {
        object: "turn_tokens",
        rollout_id: id,
        turn: turn.index,
        ...(prompt.after !== undefined && { after: prompt.after }),
        ...pageOf(tokens, ask),
        mask: untrainable === null && isTrained(turn) ? 1 : 0,
        untrainable,
        turns_checked,
        version: await versionOf(env, opened, reader, turn),
        policy_version,
        ...labels,
      },
    };
  });
}

function pageOf(tokens: TurnTokens, { after, prompt_after, limit }: TokensAsk) {
  const suffix = int32s(tokens.prompt_suffix_ids);
  const logprobs = tokens.completion_logprobs;
  return {
    forked: tokens.forked,
    prompt_length: tokens.prompt_length,
    prompt_suffix_length: suffix.length,
    prompt_suffix_ids: Array.from(suffix.subarray(prompt_after, prompt_after + limit)),
    completion_length: tokens.completion_length,
    completion_ids: Array.from(int32s(tokens.completion_ids).subarray(after, after + limit)),
    completion_logprobs:
      logprobs === null
        ? null
        : Array.from(float32s(logprobs).subarray(after, after + limit), (one) => (Number.isFinite(one) ? one : null)),
  };
}

/** The rollout whose turns are read. */
type Whose = Omit<Opened, "reader">;

async function turnAt(reader: TurnReader, index: number): Promise<StoredTurn | null> {
  const { turns } = await reader.page({ after: index - 1, before: null, limit: 1, bytes: 0 });
  return turns[0] ?? null;
}

/**
 * Why the rollout cannot be trained on, as far as is known; null if it may be. Either all of a rollout is trained on or
 * nothing. It checks this turn and the first turns, as many as a page of an outline has, so the cost does not grow with
 * the rollout.
 */
export async function lookForCause(
  env: Env,
  opened: Whose,
  reader: TurnReader,
  turn: StoredTurn,
): Promise<Pick<TurnTokenPage, "untrainable" | "turns_checked">> {
  const { entry } = opened.counted;
  if (entry.finish_seq !== null && entry.reward === null) return { untrainable: "unscored", turns_checked: 0 };
  const check = new TrainableCheck(await reader.rest());
  const page = { after: null, before: null, limit: LIMITS.outlinePerPage, bytes: LIMITS.outlinePageBytes };
  const { turns, total } = await reader.page(page);
  const facts = await factsOf(env, opened, reader, turns);
  const failed = turns.findIndex((one, at) => check.add(one, at, facts) === null);
  if (failed >= 0) return { untrainable: check.cause(), turns_checked: failed + 1 };
  if (turns.length === total) return { untrainable: check.cause(), turns_checked: total };
  if (turn.index < turns.length) return { untrainable: null, turns_checked: turns.length };
  const arrays = readTurn(turn, 0, await factsOf(env, opened, reader, [turn]));
  return { untrainable: typeof arrays === "string" ? arrays : null, turns_checked: turns.length + 1 };
}

/** Version of the weights that sampled the turn; null if it is unknown, or if the run is not a training run. */
async function versionOf(env: Env, opened: Opened, reader: TurnReader, turn: StoredTurn): Promise<number | null> {
  if (opened.run.spec.training === undefined) return null;
  // Also of a turn that its agent excluded from training.
  const { asked: _, ...sampled } = turn;
  const arrays = readTurn(sampled, 0, await factsOf(env, opened, reader, [turn]));
  return typeof arrays === "string" ? null : (arrays.sampled?.version ?? null);
}

/** What is known about the weights that sampled these turns. */
async function factsOf(
  env: Env,
  { run, counted, subrequests }: Whose,
  reader: TurnReader,
  turns: readonly StoredTurn[],
): Promise<SamplingFacts> {
  const rollout_id = counted.entry.id;
  const weights = await weightsOf(env, run.spec, [{ rollout_id, turns }], subrequests);
  const first = turns[0]?.index === 0 ? turns[0] : await turnAt(reader, 0);
  const stamped = weights?.stamped?.get(rollout_id);
  const served = weights?.served;
  return { dispatch_version: first?.dispatch_version ?? 0, served, ...(stamped && { stamped }) };
}
