/**
 * `model-calls`: makes a call for a rollout whose object sleeps. The object says what to ask and whether it still waits:
 * a message that arrives twice or late makes no call once there is an answer, and one that arrives twice before makes
 * both under one idempotency key, of which the first answer counts.
 */
import { callEndpoint, endpointOpener } from "./endpoint-call.ts";
import { rolloutObject } from "./names.ts";
import type { Subrequests } from "./subrequests.ts";
import type { ModelCallMessage } from "./wire.ts";

export async function makeModelCall(
  env: Env,
  { scope, rollout_id, turn, call }: ModelCallMessage,
  subrequests: Subrequests,
): Promise<void> {
  const rollout = rolloutObject(env, scope, rollout_id);
  const pending = await subrequests.object(() => rollout.pendingCall(turn, call));
  if (pending === null) return;
  const { endpoint_id, wait_ms, ...asked } = pending;
  const outcome = await subrequests.fetch(() =>
    callEndpoint({
      open: endpointOpener(env, scope, endpoint_id, () => Date.now()),
      call: () => asked,
      waitMs: wait_ms,
      controller: new AbortController(),
    }),
  );
  // Its time is up: the object's own alarm is due, and knows what else is over.
  if (outcome.kind === "aborted") return;
  await subrequests.object(() => rollout.modelAnswered(turn, call, outcome));
}
