/**
 * Queue consumers. The messages of a batch are worked off one after another, so that one invocation's subrequests are
 * counted together; what would go beyond them is handed back to the queue for the next one. Each message is acked or retried by itself; a message that fails five times goes to its queue's
 * dead-letter queue, which is consumed here too: recorded on the run, covered by its sweep.
 */

import { LIMITS } from "../core/limits.ts";
import { startGroups } from "./consume-groups.ts";
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
    ? (message: RunMessage) => record(env, batch.queue, message)
    : (message: RunMessage) => work(env, message, subrequests);
  for (const message of batch.messages) {
    if (subrequests.count > SUBREQUESTS_BEFORE_LAST) {
      message.retry();
      continue;
    }
    try {
      await handle(message.body);
      message.ack();
    } catch (thrown) {
      logError("message failed", `${batch.queue}, attempt ${message.attempts}`, thrown);
      message.retry({ delaySeconds: RETRY_AFTER_S });
    }
  }
}

function work(env: Env, message: RunMessage, subrequests: Subrequests): Promise<void> {
  switch (message.kind) {
    case "groups":
      return startGroups(env, message, Date.now(), subrequests);
    case "scores":
      return scoreUnits(env, message, subrequests);
    case "segment":
      return foldSegment(env, message, subrequests);
  }
}

async function record(env: Env, queue: string, message: RunMessage): Promise<void> {
  await runObject(env, message.scope, message.run_id).deadLetter(queue, message);
}
