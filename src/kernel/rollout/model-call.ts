/**
 * Calls the model from the object that plays the rollout, inside its alarm. A call lost by a kill is noticed at once,
 * since the alarm is repeated; and the time that rollouts of one object wait concurrently is billed once.
 *
 * Invariants. `leave` makes the intent durable and is called right before the call is sent; a call that could not be
 * sent does not count. Retries are decided in call-outcome.ts, not here.
 */

import type { TokenForm, TokenPrompt } from "../../contract/prompts.ts";
import { cacheSalt, mergeSampling, type Sampling, trainingSampling, withCallSeed } from "../../contract/sampling.ts";
import type { AskedCall } from "../../contract/trajectory.ts";
import type { CallSize } from "../../core/costs/call-budget.ts";
import type { OfferedTools, PlayerDescription } from "../../core/protocol/environment-code.ts";
import { outstandingPrompt, type Rollout } from "../../core/rollout/rollout.ts";
import { conversationsToRender, promptIdsOf } from "../../core/rollout/token-prompt.ts";
import { sizeOfCall } from "../clients/call-size.ts";
import { decidePrompt } from "../clients/tokenize.ts";
import { callEndpoint, type OpenEndpoint } from "../endpoint/call.ts";
import { unlessAborted } from "../kit/semaphore.ts";
import type { Subrequests } from "../kit/subrequests.ts";
import type { CalledBy, Held, Reach, ReachedCall, TurnCall, TurnOutcome, Unasked } from "../messages/endpoint-wire.ts";
import type { RolloutSpec } from "../messages/wire.ts";
import { askedTools } from "../run/training/asked-tools.ts";
import type { AnswerCache } from "./answer-cache.ts";

export interface Departure {
  /** The rollout that calls. */
  readonly from: Rollout;
  /** How long the answer is waited for, in milliseconds. */
  readonly waitMs: number;
  /** Milliseconds until the rollout's own deadline at the time of the call; infinity without one. */
  readonly latestMs: () => number;
  /** Adds to the rollout how its prompt is sent, and returns it. It is written with the call. */
  readonly decide: (token_prompt: TokenPrompt) => Rollout;
  /** Writes that the call is sent. */
  readonly leave: () => void;
  /** False if a call that has waited must not be sent any more. */
  readonly mayLeave: () => boolean;
}

/**
 * Calls the model for the outstanding turn. `later`: it waited for a connection until it could not be sent any more.
 * Abort `controller` if the call is not needed any more.
 */
export type CallModel = (
  departure: Departure,
  controller: AbortController,
) => Promise<TurnOutcome | Unasked | Held | { readonly kind: "later" }>;

export function endpointReach(open: OpenEndpoint): Reach {
  return ({ call, ...way }) => callEndpoint({ ...way, open, call: () => call() });
}

/** The part of a rollout's spec that its calls depend on. */
type Calling = Pick<RolloutSpec, "run_id" | "rollout_id" | "model" | "sampling"> &
  Pick<RolloutSpec, "group" | "slot" | "attempt"> &
  Pick<RolloutSpec, "policy_version" | "policy_generation" | "agent" | "prompts">;

/** The environment that plays the rollout, and the tools that it offers for a rollout's next call. */
export interface Offer {
  readonly player: Pick<PlayerDescription, "sampling" | "maxSeqLen">;
  readonly tools: (rollout: Rollout) => Promise<OfferedTools>;
}

/** The request for the rollout's outstanding turn. `by`: set in a run on a fleet. */
export function turnCall(
  spec: Calling,
  rollout: Rollout,
  { sampling, maxSeqLen }: Offer["player"],
  tools: OfferedTools,
  by?: CalledBy,
): TurnCall | Unasked {
  if ("error" in tools) return { kind: "unasked", error: tools };
  return {
    model: by?.model ?? spec.model,
    messages: outstandingPrompt(rollout),
    tools: askedTools(spec, tools),
    sampling: withCallSeed(askedSampling(spec, sampling, by, rollout.intent?.asked), {
      ...spec,
      turn: rollout.turns.length,
    }),
    ...(maxSeqLen !== null && { max_seq_len: maxSeqLen }),
    ...tokenPromptOf(rollout, spec.prompts),
    idempotency_key: keyOf(rollout),
  };
}

function tokenPromptOf(rollout: Rollout, form: TokenForm | undefined): Pick<TurnCall, "token_prompt"> {
  const ids = promptIdsOf(rollout);
  const sent = rollout.intent?.token_prompt;
  if (ids === null || sent === undefined || "messages" in sent) return {};
  const { max_model_len } = sent;
  return { token_prompt: { ids, max_model_len, ...(form === "chat_token_ids" && { chat: true }) } };
}

/** An agent may make another call for the same turn, once the first was refused: that is not a repeat. */
function keyOf({ id, turns, intent }: Rollout): string {
  const asked = intent?.asked === undefined ? [] : [intent.asked.hash.slice(0, 16)];
  return [id, turns.length, ...asked].join(":");
}

/**
 * All turns of a rollout have the cache salt of the version at its dispatch, also those that later weights sample. On a
 * fleet, which has the version of each replica, they have the salt of the weights that sample.
 */
function askedSampling(
  { run_id, policy_version, policy_generation = 0, sampling, agent }: Calling,
  environment: Sampling,
  by: CalledBy | undefined,
  asked: AskedCall | undefined,
): Sampling {
  const isKept = agent?.sampling === "keep" && policy_version === undefined;
  const run =
    asked === undefined ? sampling : mergeSampling(sampling, isKept ? asked.sampling : formOf(asked.sampling));
  if (policy_version === undefined) return mergeSampling(environment, run);
  const version = by?.version ?? policy_version;
  const generation = by?.generation ?? policy_generation;
  return trainingSampling(environment, run, cacheSalt({ run_id, generation, version }));
}

/** The members of an agent's sampling that belong to how it reads replies, and do not change the distribution. */
function formOf({ stop, extra_body }: Sampling): Sampling {
  const chat_template_kwargs = extra_body?.["chat_template_kwargs"];
  return {
    ...(stop !== undefined && { stop }),
    ...(chat_template_kwargs !== undefined && { extra_body: { chat_template_kwargs } }),
  };
}

/** The maximum size of the rollout's outstanding call; null if no call will be sent. */
export function callSizer(spec: Calling, { player, tools }: Offer): (rollout: Rollout) => Promise<CallSize | null> {
  return async (rollout) => {
    const call = turnCall(spec, rollout, player, await tools(rollout));
    if ("kind" in call) return null;
    const size = sizeOfCall(call);
    if (spec.prompts === undefined) return size;
    // The ids of earlier answers may be more than their text has bytes.
    const added = sizeOfCall({ ...call, messages: rollout.intent?.append ?? [] });
    return { ...size, prompt_tokens: Math.max(size.prompt_tokens, rollout.last_ids.length + added.prompt_tokens) };
  };
}

/** A longer timer fires at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/**
 * A call's time begins when a connection of the object (`calls`) is free for it. `turn`: resolves when its request may
 * be built; null: at once.
 */
export function modelCaller(
  spec: RolloutSpec,
  { player, tools }: Offer,
  { reach, answers }: { readonly reach: Reach; readonly answers: AnswerCache },
  calls: Subrequests,
  turn: () => Promise<void> | null,
): CallModel {
  /** `late`: time has passed since the step began, so it may not fit into the alarm any more. */
  const send = async (
    { from, waitMs, latestMs, decide: write, leave, mayLeave }: Departure,
    { asked, offered, late }: { readonly asked: TurnCall; readonly offered: OfferedTools; readonly late: boolean },
    controller: AbortController,
  ): ReturnType<CallModel> => {
    let decided = from;
    const decide = decider(spec, from, asked, (token_prompt) => {
      decided = write(token_prompt);
    });
    const call = (by?: CalledBy) => {
      leave();
      const isAsked = by === undefined && decided === from;
      const made = isAsked ? asked : turnCall(spec, decided, player, offered, by);
      return "kind" in made ? asked : made;
    };
    const largeTurn = turn();
    let waited = late || largeTurn !== null;
    if (largeTurn !== null) await largeTurn;
    return await calls.inTurn<Awaited<ReturnType<CallModel>>>(
      async (connection) => {
        if (waited && !mayLeave()) return { kind: "later" };
        const way = { from, call, controller, connection, waitMs: Math.min(waitMs, latestMs()) };
        return await reach({ ...way, ...(decide && { decide }) });
      },
      async (wait) => {
        waited = true;
        await waitUntil(wait, controller, latestMs());
      },
    );
  };
  return async (departure, controller) => {
    const { from, latestMs } = departure;
    const offered = await tools(from);
    const asked = turnCall(spec, from, player, offered);
    if ("kind" in asked) return asked;
    const { signal } = controller;
    try {
      if (!answers.holds(asked)) return await send(departure, { asked, offered, late: false }, controller);
      const kept = await answers.find(asked, (wait) => waitUntil(wait, controller, latestMs()));
      if (kept !== null) return { kind: "answered", ...kept };
      const came = await send(departure, { asked, offered, late: true }, controller);
      if (came.kind === "answered") answers.keep(asked, came.response);
      return came;
    } catch (thrown) {
      if (signal.aborted && thrown === signal.reason) return { kind: "aborted" };
      throw thrown;
    }
  };
}

/** Decides how the prompt of the outstanding call is sent, once; undefined if it is sent as messages, or was decided. */
function decider(
  { prompts }: RolloutSpec,
  from: Rollout,
  asked: TurnCall,
  decided: (token_prompt: TokenPrompt) => void,
): ReachedCall["decide"] {
  if (prompts === undefined || from.turns.length === 0 || from.intent?.token_prompt !== undefined) return undefined;
  const conversations = conversationsToRender(from, asked.messages, asked.tools.length > 0, prompts);
  let isDecided = false;
  return async (where, by) => {
    // The call is repeated at once without a part that its endpoint refuses: with the same prompt.
    if (isDecided) return null;
    const { idempotency_key, sampling, tools } = asked;
    const to = { model: by?.model ?? asked.model, sampling, tools };
    const found =
      "messages" in conversations
        ? { kind: "decided" as const, token_prompt: conversations }
        : await decidePrompt({ ...where, idempotency_key }, to, from.last_ids, conversations);
    if (found.kind !== "decided") return found;
    isDecided = true;
    decided(found.token_prompt);
    return null;
  };
}

/** Waits at most so many milliseconds; after them, the call is aborted. */
async function waitUntil(wait: Promise<void>, controller: AbortController, mostMs: number): Promise<void> {
  const late = setTimeout(() => controller.abort(), Math.min(LONGEST_TIMER_MS, Math.max(0, mostMs)));
  try {
    await unlessAborted(wait, controller.signal);
  } finally {
    clearTimeout(late);
  }
}
