/**
 * `model-calls`: makes a call for a rollout whose object sleeps. The object says what to ask and whether it still waits:
 * a message that arrives twice or late makes no call. One whose consumer failed or died makes it again, under the same
 * idempotency key, and the first answer counts.
 */

import type { Delivery, ModelCallMessage } from "../contract/wire.ts";
import { callEndpoint, endpointOpener } from "../endpoint/call.ts";
import { handBack } from "../environment/hand-back.ts";
import { rolloutObject } from "../kit/names.ts";
import type { Subrequests } from "../kit/subrequests.ts";

export async function makeModelCall(
  env: Env,
  { scope, rollout_id, turn, call }: ModelCallMessage,
  delivery: Delivery,
  subrequests: Subrequests,
): Promise<void> {
  const asking = rolloutObject(env, scope, rollout_id);
  const pending = await subrequests.object(() => asking.pendingCall(turn, call, delivery));
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
  await handBack(() => {
    const waiting = rolloutObject(env, scope, rollout_id);
    return subrequests.object(() => waiting.modelAnswered(turn, call, outcome));
  });
}
