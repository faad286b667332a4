/**
 * `model-calls`: makes a call for a rollout whose object sleeps. The object says what to ask and whether it still waits:
 * a message that arrives twice or late makes no call. One whose consumer failed or died makes it again, under the same
 * idempotency key, and the first answer counts.
 *
 * A cancel cannot reach whoever makes the call, and one that hangs would keep its place from the calls of others for
 * the rest of its time. So the consumer looks from time to time whether the rollout is over, and hangs up then.
 */

import type { Scope } from "../../contract/scope.ts";
import type { Delivery, ModelCallMessage } from "../contract/wire.ts";
import { callEndpoint, endpointOpener } from "../endpoint/call.ts";
import { handBack } from "../environment/hand-back.ts";
import { logError } from "../kit/log.ts";
import { rolloutObject } from "../kit/names.ts";
import type { Subrequests } from "../kit/subrequests.ts";

/** The first wait before a look; each one after it is twice as long, up to a minute. */
const FIRST_LOOK_MS = 5_000;
const LONGEST_WAIT_MS = 60_000;

/** `firstLookMs`: tests shrink it. */
export async function makeModelCall(
  env: Env,
  { scope, rollout_id, turn, call }: ModelCallMessage,
  delivery: Delivery,
  subrequests: Subrequests,
  firstLookMs = FIRST_LOOK_MS,
): Promise<void> {
  const asking = rolloutObject(env, scope, rollout_id);
  const pending = await subrequests.object(() => asking.pendingCall(turn, call, delivery));
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
  const isOver = () => isRolloutOver(env, scope, rollout_id, subrequests);
  const outcome = await hangUpOnceOver(makeIt, isOver, firstLookMs);
  // Its time is up, or its rollout is over: the object's own alarm is due or was, and knows what else is over.
  if (outcome.kind === "aborted") return;
  await handBack(() => {
    const waiting = rolloutObject(env, scope, rollout_id);
    return subrequests.object(() => waiting.modelAnswered(turn, call, outcome));
  });
}

async function hangUpOnceOver<T>(
  makeCall: (controller: AbortController) => Promise<T>,
  isOver: () => Promise<boolean>,
  firstLookMs: number,
): Promise<T> {
  const controller = new AbortController();
  let timer: ReturnType<typeof setTimeout> | null = null;
  const lookIn = (ms: number) => {
    timer = setTimeout(async () => {
      if (await isOver()) controller.abort();
      // The call may have come back meanwhile.
      else if (timer !== null) lookIn(Math.min(LONGEST_WAIT_MS, 2 * ms));
    }, ms);
  };
  lookIn(firstLookMs);
  try {
    return await makeCall(controller);
  } finally {
    if (timer !== null) clearTimeout(timer);
    timer = null;
  }
}

/** An object that does not answer says nothing about its rollout: the call goes on. */
async function isRolloutOver(env: Env, scope: Scope, rolloutId: string, subrequests: Subrequests): Promise<boolean> {
  try {
    const { state } = await subrequests.object(() => rolloutObject(env, scope, rolloutId).ask());
    return state !== "running";
  } catch (thrown) {
    logError("rollout does not answer", rolloutId, thrown);
    return false;
  }
}
