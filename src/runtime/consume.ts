/**
 * Queue consumers. The messages of a batch are worked off one after another, so that one invocation's subrequests are
 * counted together; batches are small enough (wrangler.toml) that the fullest stays within them. Each message is acked or retried by itself; a message that fails five times goes to its queue's
 * dead-letter queue, which is consumed here too: recorded on the run, covered by its sweep.
 */

import { startGroups } from "./consume-groups.ts";
import { scoreUnits } from "./consume-scores.ts";
import { foldSegment } from "./consume-segments.ts";
import { logError } from "./log.ts";
import { runObject } from "./names.ts";
import { Subrequests } from "./subrequests.ts";
import type { RunMessage } from "./wire.ts";

const DEAD_LETTERS = "-dead";
const RETRY_AFTER_S = 1;

export async function consume(batch: MessageBatch<RunMessage>, env: Env): Promise<void> {
  const subrequests = new Subrequests();
  const dead = batch.queue.endsWith(DEAD_LETTERS);
  const handle = dead
    ? (message: RunMessage) => record(env, batch.queue, message)
    : (message: RunMessage) => work(env, message, subrequests);
  for (const message of batch.messages) {
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
