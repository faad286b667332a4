/**
 * Queue consumers. The messages of a batch are worked off one after another, so that one invocation's subrequests are
 * counted together; what would go beyond them is handed back to the queue for the next one. Model calls take their time
 * without computing: those of a batch are made side by side, as many as there are connections. Each message is acked or retried by itself; a message that fails five times goes to its queue's
 * dead-letter queue, which is consumed here too: recorded on the run, covered by its sweep.
 */

import { LIMITS } from "../core/limits.ts";
import { startGroups } from "./consume-groups.ts";
import { makeModelCall } from "./consume-model-calls.ts";
import { scoreUnits } from "./consume-scores.ts";
import { foldSegment } from "./consume-segments.ts";
import { logError } from "./log.ts";
import { runObject } from "./names.ts";
import { Subrequests } from "./subrequests.ts";
import type { RunMessage } from "./wire.ts";

const DEAD_LETTERS = "-dead";
const RETRY_AFTER_S = 1;
/** A message needs at most 420: 400 trajectories or 26 objects, and the run's answers. */
const SUBREQUESTS_BEFORE_LAST = LIMITS.subrequests - 420;

export async function consume(batch: MessageBatch<RunMessage>, env: Env): Promise<void> {
  const subrequests = new Subrequests();
  const dead = batch.queue.endsWith(DEAD_LETTERS);
  const handle = dead
    ? ({ body }: Message<RunMessage>) => record(env, batch.queue, body)
    : (message: Message<RunMessage>) => work(env, message, subrequests);
  const settle = async (message: Message<RunMessage>) => {
    if (subrequests.count > SUBREQUESTS_BEFORE_LAST) return message.retry();
    try {
      await handle(message);
      message.ack();
    } catch (thrown) {
      logError("message failed", `${batch.queue}, attempt ${message.attempts}`, thrown);
      message.retry({ delaySeconds: RETRY_AFTER_S });
    }
  };
  if (!dead && batch.messages.every(({ body }) => body.kind === "model_call")) {
    await subrequests.six(batch.messages, settle);
  } else {
    for (const message of batch.messages) await settle(message);
  }
}

function work(
  env: Env,
  { id, attempts: attempt, body }: Message<RunMessage>,
  subrequests: Subrequests,
): Promise<void> {
  switch (body.kind) {
    case "groups":
      return startGroups(env, body, Date.now(), subrequests);
    case "scores":
      return scoreUnits(env, body, subrequests);
    case "segment":
      return foldSegment(env, body, subrequests);
    case "model_call":
      return makeModelCall(env, body, { id, attempt }, subrequests);
  }
}

async function record(env: Env, queue: string, message: RunMessage): Promise<void> {
  await runObject(env, message.scope, message.run_id).deadLetter(queue, message);
}
