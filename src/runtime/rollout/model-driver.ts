/**
 * Who waits for the model: the object that plays the rollout, inside its alarm, which recovers at once and is billed
 * for the wait (once for all that its rollouts wait side by side), or a queue consumer, which is billed for what it
 * computes, while the object sleeps. Chosen per deployment (MODEL_DRIVER).
 *
 * Invariants. `leave` makes the intent durable and is called right before the call, or its message, leaves; a call that
 * could not leave was none. Whoever makes a call uses the same idempotency key. Retries are not decided here.
 */
import { RolloutError } from "../../contract/errors.ts";
import { cacheSalt, mergeSampling, type Sampling, trainingSampling, withCallSeed } from "../../contract/sampling.ts";
import type { AnyEnvironment } from "../../core/environments/any-environment.ts";
import { offeredTools } from "../../core/rollout/harness.ts";
import { outstandingPrompt, type Rollout } from "../../core/rollout/rollout.ts";
import type { TurnCall, TurnOutcome, Unasked } from "../contract/endpoint-wire.ts";
import type { Delivery, ModelCallMessage, RolloutSpec } from "../contract/wire.ts";
import { callEndpoint, endpointOpener, type OpenEndpoint } from "../endpoint/call.ts";
import { FIRST_LOOK_MS, hangUpOnceOver } from "../kit/hang-up.ts";
import { logError } from "../kit/log.ts";
import { rolloutHost } from "../kit/names.ts";
import { retry } from "../kit/retry.ts";
import type { Subrequests } from "../kit/subrequests.ts";
import { unlessAborted } from "../kit/turns.ts";
import { askedTools } from "../run/training/asked-tools.ts";

export interface Departure {
  /** The rollout that calls. */
  readonly from: Rollout;
  /** Milliseconds the answer is waited for. */
  readonly waitMs: number;
  /** The rollout with its intent, which is on disk before anything leaves. `until`: awaited elsewhere, up to then. */
  readonly leave: (until?: number) => Rollout;
  /** Nothing left after all. */
  readonly stay: () => void;
  /** False once a call that has waited must not leave any more. */
  readonly mayLeave: () => boolean;
}

type NoOutcome = { readonly kind: "away" } | { readonly kind: "later" };

export interface ModelDriver {
  /**
   * Calls the model for the outstanding turn. `away`: the answer comes by itself, or its time passes. `later`: it waited for
   * a connection until it might not leave any more.
   */
  readonly call: (departure: Departure) => Promise<TurnOutcome | Unasked | NoOutcome>;
  /** Nobody waits for the call in flight any more. */
  readonly abort: () => void;
}

/** As much of a rollout's spec as its calls depend on. */
type Calling = Pick<RolloutSpec, "run_id" | "rollout_id" | "model" | "sampling"> &
  Pick<RolloutSpec, "group" | "slot" | "attempt"> &
  Pick<RolloutSpec, "policy_version" | "policy_generation">;

/** What the model is asked for the rollout's outstanding turn. */
export function turnCall(spec: Calling, rollout: Rollout, environment: AnyEnvironment): TurnCall | Unasked {
  const tools = offeredTools(environment, rollout);
  if ("error" in tools) return { kind: "unasked", error: tools };
  const { sampling, maxSeqLen } = environment.route(rollout).environment;
  return {
    model: spec.model,
    messages: outstandingPrompt(rollout),
    tools: askedTools(spec, tools),
    sampling: withCallSeed(askedSampling(spec, sampling), { ...spec, turn: rollout.turns.length }),
    ...(maxSeqLen !== null && { max_seq_len: maxSeqLen }),
    idempotency_key: `${spec.rollout_id}:${rollout.turns.length}`,
  };
}

/** All turns of a rollout have the salt of the version it was dispatched by, also those that later weights sample. */
function askedSampling(
  { run_id, policy_version: version, policy_generation: generation = 0, sampling: run }: Calling,
  environment: Sampling,
): Sampling {
  if (version === undefined) return mergeSampling(environment, run);
  return trainingSampling(environment, run, cacheSalt({ run_id, generation, version }));
}

/** The call lives and dies with the object's alarm. Its time begins when a connection of the object is free for it. */
export function awaitInAlarm(
  spec: RolloutSpec,
  environment: AnyEnvironment,
  open: OpenEndpoint,
  calls: Subrequests,
): ModelDriver {
  let controller = new AbortController();
  return {
    call: async ({ from, waitMs, leave, mayLeave }) => {
      controller = new AbortController();
      const { signal } = controller;
      const call = turnCall(spec, from, environment);
      if ("kind" in call) return call;
      const send = () => {
        leave();
        return call;
      };
      const way = { open, call: send, waitMs, controller };
      let waited = false;
      try {
        return await calls.inTurn(
          async () => (waited && !mayLeave() ? { kind: "later" } : await callEndpoint(way)),
          (wait) => {
            waited = true;
            return unlessAborted(wait, signal);
          },
        );
      } catch (thrown) {
        if (signal.aborted && thrown === signal.reason) return { kind: "aborted" };
        throw thrown;
      }
    },
    abort: () => controller.abort(),
  };
}

/** The call is a message: its consumer asks for the prompt, calls, and hands the answer back. */
export function awaitInQueue(spec: RolloutSpec, queue: Queue, now: () => number, calls: Subrequests): ModelDriver {
  return {
    call: async ({ waitMs, leave, stay }) => {
      try {
        // Its time counts from its departure, and not from when it began to wait for a connection.
        await calls.inTurn(() => queue.send(callMessage(spec, leave(now() + waitMs))));
      } catch (thrown) {
        stay();
        throw thrown;
      }
      return { kind: "away" };
    },
    // Out of reach: what comes back finds that nobody waits for it.
    abort: () => undefined,
  };
}

function callMessage(spec: RolloutSpec, { turns, intent }: Rollout): ModelCallMessage {
  const { scope, run_id, rollout_id, host } = spec;
  const call = intent?.calls ?? 0;
  return { kind: "model_call", scope, run_id, rollout_id, host, turn: turns.length, call };
}

/** Throws for a value that is neither. */
export function awaitsInQueue({ MODEL_DRIVER: driver }: Env): boolean {
  if (driver === "alarm" || driver === "queue") return driver === "queue";
  throw new RolloutError(
    `MODEL_DRIVER is "${driver}": set it to "alarm" or "queue" under [vars] in wrangler.toml, and deploy`,
  );
}

/**
 * `model-calls`: makes a call for a rollout that waits in an object. The object says what to ask, and whether the
 * rollout still waits: a message that arrives twice or late makes no call. One whose consumer failed or died makes it
 * again, under the same idempotency key, and the first answer counts.
 *
 * A cancel cannot reach whoever makes the call, and one that hangs would keep its place from the calls of others for
 * the rest of its time. So the consumer looks from time to time whether the rollout is over, and hangs up then.
 */

/** `firstLookMs`: tests shrink it. */
export async function makeModelCall(
  env: Env,
  message: ModelCallMessage,
  delivery: Delivery,
  subrequests: Subrequests,
  firstLookMs = FIRST_LOOK_MS,
): Promise<void> {
  const { scope, run_id, host } = message;
  const asking = rolloutHost(env, scope, run_id, host);
  const pending = await subrequests.object(() => asking.pendingCall(message, delivery));
  if (pending === null) return;
  const { endpoint_id, wait_ms, ...asked } = pending;
  const makeIt = (controller: AbortController) =>
    subrequests.fetch(() =>
      callEndpoint({
        open: endpointOpener(env, scope, endpoint_id, () => Date.now()),
        call: () => asked,
        waitMs: wait_ms,
        controller,
      }),
    );
  const isOver = () => isRolloutOver(env, message, subrequests);
  const outcome = await hangUpOnceOver(makeIt, isOver, firstLookMs);
  // Its time is up, or its rollout is over: the alarm of the object is due or was, and knows what else is over.
  if (outcome.kind === "aborted") return;
  await retry(() => {
    const waiting = rolloutHost(env, scope, run_id, host);
    return subrequests.object(() => waiting.modelAnswered(message, outcome));
  });
}

/** An object that does not answer says nothing about its rollout: the call goes on. */
async function isRolloutOver(
  env: Env,
  { scope, run_id, host, rollout_id }: ModelCallMessage,
  subrequests: Subrequests,
): Promise<boolean> {
  try {
    const [standing] = await subrequests.object(() => rolloutHost(env, scope, run_id, host).ask([rollout_id]));
    return standing?.state !== "running";
  } catch (thrown) {
    logError("rollout does not answer", rollout_id, thrown);
    return false;
  }
}
