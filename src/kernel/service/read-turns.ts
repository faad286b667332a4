/**
 * Reads one rollout in pieces: the cost of each read is bounded by the piece, not by the rollout
 * (trajectory/read-turns.ts). For a rollout that has not ended, it reads what is stored so far.
 */
import type { JsonObject } from "../../contract/json.ts";
import { LIMITS } from "../../contract/limits.ts";
import { looksFailed } from "../../contract/looks-failed.ts";
import { textOf } from "../../contract/messages.ts";
import type { Scope } from "../../contract/scope.ts";
import { type StoredTurn, unpackState } from "../../contract/trajectory.ts";
import {
  beginningOf,
  beginningOfMessage,
  beginningsOf,
  type Outline,
  type OutlineTurn,
  type RolloutHead,
  type ShownTurn,
  type TurnPage,
  type WholeTurn,
} from "../../contract/turns.ts";
import { type Result, refuse } from "../messages/refusal.ts";
import type { TrajectoryRest, TurnSlice, TurnsAsk } from "../messages/turn-wire.ts";
import type { TurnReader } from "../trajectory/read-turns.ts";
import { type Opened, withTurns } from "./open-turns.ts";
import { type Credits, creditsOf, rolloutView, turnView } from "./read-rollouts.ts";

const UNBOUNDED = Number.POSITIVE_INFINITY;
/** The state is stored whole once in this many turns (contract/trajectory.ts). */
const WHOLE_STATES = 8;
const TOOLS_NAMED = 5;

/** Everything except prompt, completion, turns and state. */
export function readRolloutHead(env: Env, scope: Scope, id: string): Promise<Result<RolloutHead>> {
  return withTurns(env, scope, id, async (opened) => {
    return { ok: true, value: headOf(opened, (await opened.reader?.rest()) ?? null) };
  });
}

function headOf({ run, counted, reader }: Opened, rest: TrajectoryRest | null): RolloutHead {
  const viewed = rest && { ...rest, turns: [], prompt: [], completion: [], final_state: {} };
  const { turns: _, prompt: __, completion: ___, state: ____, ...view } = rolloutView(run, counted, viewed);
  const ended = counted.entry.ended_at !== null && rest !== null;
  return {
    ...view,
    object: "rollout_head",
    task_text: counted.entry.task_text,
    n_turns: reader?.total ?? 0,
    duration_ms: ended ? Math.max(0, rest.ended_at - rest.started_at) : null,
    answer: rest?.answer ? beginningOf(rest.answer) : null,
    tools: (rest?.tools ?? []).slice(0, LIMITS.shownItems).map(({ function: offered }) => offered.name),
    final_env_response: beginningsOf(rest?.final_env_response ?? []),
  };
}

/** A page of its turns, in order. With `before` and without `after`: the last turns before that one. */
export function readTurns(env: Env, scope: Scope, id: string, ask: Omit<TurnsAsk, "bytes">): Promise<Result<TurnPage>> {
  const bytes = LIMITS.turnPageBytes;
  return readPage(env, scope, id, { ...ask, bytes }, ({ counted }) => {
    const credits = creditsOf(counted);
    return (turn, facts) => shownTurn(turn, facts, credits);
  });
}

/** The same without texts, for drawing the whole rollout. */
export function readOutline(
  env: Env,
  scope: Scope,
  id: string,
  ask: Pick<TurnsAsk, "after" | "limit">,
): Promise<Result<Outline>> {
  const bytes = LIMITS.outlinePageBytes;
  return readPage(env, scope, id, { ...ask, before: null, bytes }, () => outlineTurn);
}

interface Page<View> {
  readonly object: "list";
  readonly data: View[];
  readonly first_id: string | null;
  readonly last_id: string | null;
  readonly has_more: boolean;
  readonly n_turns: number;
}

function readPage<View>(
  env: Env,
  scope: Scope,
  id: string,
  ask: TurnsAsk,
  viewer: (opened: Opened) => (turn: StoredTurn, facts: TurnFacts) => View,
): Promise<Result<Page<View>>> {
  return withTurns(env, scope, id, async (opened) => {
    const slice = (await opened.reader?.page(ask)) ?? NO_TURNS;
    const { from, to, more, total } = slice;
    const viewOf = viewer(opened);
    const data = slice.turns.map((turn, at) => viewOf(turn, factsOf(turn, at, slice)));
    const [first_id, last_id] = data.length === 0 ? [null, null] : [String(from), String(to - 1)];
    return { ok: true, value: { object: "list", data, first_id, last_id, has_more: more, n_turns: total } };
  });
}

const NO_TURNS: TurnSlice = { total: 0, started_at: 0, from: 0, to: 0, more: false, turns: [], bytes: [] };

function shownTurn(turn: StoredTurn, facts: TurnFacts, credits: Credits): ShownTurn {
  const { append } = turn.prompt;
  return {
    ...turnView(turn, credits),
    ...facts,
    prompt: {
      ...turn.prompt,
      append: beginningsOf(append),
      left_out: Math.max(0, append.length - LIMITS.shownItems),
    },
    completion: beginningOfMessage(turn.completion),
  };
}

type TurnFacts = Pick<ShownTurn, "at_ms" | "model" | "stored_bytes" | "tokens">;

function factsOf(turn: StoredTurn, at: number, { started_at, bytes }: TurnSlice): TurnFacts {
  const { tokens } = turn;
  return {
    at_ms: Math.round(turn.answered_at - started_at),
    model: turn.model,
    stored_bytes: bytes[at] ?? 0,
    tokens: tokens && {
      prompt: tokens.prompt_length,
      completion: tokens.completion_length,
      forked: tokens.forked,
      logprobs: tokens.completion_logprobs !== null,
    },
  };
}

function outlineTurn(turn: StoredTurn, { at_ms, stored_bytes }: TurnFacts): OutlineTurn {
  const { index, latency_ms, calls, from_cache, completion, prompt, is_truncated, tokens, tool_failed } = turn;
  const called = completion.tool_calls ?? [];
  const names = new Set(called.map(({ function: { name } }) => name.slice(0, LIMITS.nameCharacters)));
  const failed = prompt.append.filter((message) => message.role === "tool" && looksFailed(textOf(message)));
  return {
    index,
    at_ms,
    latency_ms,
    calls,
    ...(from_cache && { from_cache }),
    ...(prompt.after !== undefined && { after: prompt.after }),
    messages: prompt.append.length,
    tool_calls: called.length,
    tools: [...names].slice(0, TOOLS_NAMED),
    ...(tool_failed && { tool_calls_failed: tool_failed.filter((one) => one === true).length }),
    failed: failed.length,
    stored_bytes,
    is_truncated,
    forked: tokens?.forked === true && index > 0,
  };
}

/** One turn with all its texts, and the state after it. */
export function readTurn(env: Env, scope: Scope, id: string, number: string): Promise<Result<WholeTurn>> {
  return withTurns(env, scope, id, async ({ counted, reader }) => {
    const index = turnIn(reader, number);
    if (index === null || reader === null) return noTurn(id, number);
    const wholeBefore = index - (index % WHOLE_STATES) - 1;
    const after = wholeBefore < 0 ? null : wholeBefore - 1;
    const slice = await reader.page({ after, before: index + 1, limit: WHOLE_STATES + 1, bytes: UNBOUNDED });
    const { turns } = slice;
    const turn = turns.at(-1);
    if (turn === undefined) return noTurn(id, number);
    const before = wholeBefore < 0 ? await reader.initialState() : {};
    const state = turn.state_after === null ? null : stateBehind(turns, before);
    const view = turnView(turn, creditsOf(counted));
    return {
      ok: true,
      value: { object: "turn", rollout_id: id, ...view, ...factsOf(turn, turns.length - 1, slice), state },
    };
  });
}

function stateBehind(turns: readonly StoredTurn[], before: JsonObject): JsonObject {
  return turns.reduce((state, { state_after }) => (state_after ? unpackState(state, state_after) : state), before);
}

/** The number in the path; null if there is no such turn. */
export function turnIn(reader: TurnReader | null, number: string): number | null {
  const index = /^(0|[1-9]\d{0,8})$/.test(number) ? Number(number) : -1;
  return index >= 0 && index < (reader?.total ?? 0) ? index : null;
}

export function noTurn(id: string, number: string): Result<never> {
  return refuse("not_found", `${id} has no turn ${number.slice(0, 20)}`, "turn");
}
