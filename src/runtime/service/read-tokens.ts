/** The tokens of one turn, as its engine sent them and as training would count them. */
import { LIMITS } from "../../contract/limits.ts";
import type { Scope } from "../../contract/scope.ts";
import type { StoredTurn, TurnTokens } from "../../contract/trajectory.ts";
import type { TurnTokenPage } from "../../contract/turns.ts";
import { float32s, int32s } from "../../core/rollout/tokens.ts";
import { readTurn, type SamplingFacts, TrainableCheck } from "../../core/training/trainable.ts";
import { type Result, refuse } from "../contract/refusal.ts";
import { weightsOf } from "../scoring/group-samples.ts";
import type { TurnReader } from "../trajectory/read-turns.ts";
import { type Opened, withTurns } from "./open-turns.ts";
import { creditsOf, turnView } from "./read-rollouts.ts";
import { noTurn, rangeOf, turnIn } from "./read-turns.ts";

export interface TokensAsk {
  /** Sampled ids and ids of the prompt's suffix that are passed over. */
  readonly after: number;
  readonly prompt_after: number;
  /** Of each. */
  readonly limit: number;
}

/** `conflict` for a turn without token ids. */
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
    const [turn] = index === null || reader === null ? [] : await reader.turns(index, index + 1);
    if (turn === undefined || reader === null) return noTurn(id, number);
    const { tokens } = turn;
    if (tokens === null) return refuse("conflict", `turn ${number}: its engine sent no token ids`, "turn");
    const { index: _, prompt: __, completion: ___, ...view } = turnView(turn, creditsOf(counted));
    const { policy_version, first_policy_version, dispatch_version, replica, replica_version } = view;
    const untrainable = await causeOf(env, opened, reader);
    const labels = { first_policy_version, dispatch_version, replica, replica_version };
    return {
      ok: true,
      value: {
        object: "turn_tokens",
        rollout_id: id,
        turn: turn.index,
        ...pageOf(tokens, ask),
        mask: untrainable === null ? 1 : 0,
        untrainable,
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

/** Why nothing of the rollout trains, by what is known now; null where it may. All or nothing of a rollout trains. */
async function causeOf(env: Env, opened: Opened, reader: TurnReader): Promise<string | null> {
  const { entry } = opened.counted;
  if (entry.finish_seq !== null && entry.reward === null) return "unscored";
  const check = new TrainableCheck(await reader.rest());
  for (let from = 0; from < reader.total; ) {
    const page = { after: from - 1, before: null, limit: reader.total, bytes: LIMITS.turnPageBytes };
    const { to } = rangeOf(reader.total, page, (index) => reader.bytesOf(index));
    const turns = await reader.turns(from, to);
    const facts = await factsOf(env, opened, reader, turns);
    if (turns.some((turn, at) => check.add(turn, at, facts) === null)) break;
    from = to;
  }
  return check.cause();
}

/** Of the weights that sampled the turn; null where nobody can say, or nobody trains. */
async function versionOf(env: Env, opened: Opened, reader: TurnReader, turn: StoredTurn): Promise<number | null> {
  if (opened.run.spec.training === undefined) return null;
  const arrays = readTurn(turn, 0, await factsOf(env, opened, reader, [turn]));
  return typeof arrays === "string" ? null : arrays.version;
}

/** What is known of the weights that sampled these turns. */
async function factsOf(
  env: Env,
  { run, counted, subrequests }: Opened,
  reader: TurnReader,
  turns: readonly StoredTurn[],
): Promise<SamplingFacts> {
  const rollout_id = counted.entry.id;
  const weights = await weightsOf(env, run.spec, [{ rollout_id, turns }], subrequests);
  const [first] = await reader.turns(0, 1);
  const stamped = weights?.stamped?.get(rollout_id);
  const served = weights?.served;
  return { dispatch_version: first?.dispatch_version ?? 0, served, ...(stamped && { stamped }) };
}
