/**
 * The consumers of all queues.
 *
 * The messages of a batch share one count of subrequests and of computing. The organisation that has computed least in
 * this process comes first. Organisations that have used up their share of the process come last, and an invocation
 * waits for them only briefly. The messages that are left, or that would exceed a limit, are sent to the end of their
 * queue again, after the messages of others; a retry would count as a failure. Starts of rollouts, judgements and scores
 * without much work mostly wait, so those of a batch are handled side by side, as many as there are connections, if all
 * of them together are no more work than the largest single message. Others are handled one after another. Each message
 * is acked or retried separately. A message that failed six times goes to its queue's dead-letter queue. That queue is
 * consumed here too: the message is recorded on the run, and the run's reconciliation does its work.
 */

import { LIMITS } from "../../contract/limits.ts";
import { SHARDS } from "../../core/run-queues.ts";
import { PROCESS_SCHEDULER } from "../kit/fair-scheduler.ts";
import { idsOf, logError } from "../kit/log.ts";
import { runObject } from "../kit/names.ts";
import { Subrequests } from "../kit/subrequests.ts";
import type { RunMessage } from "../messages/wire.ts";
import { startGroups } from "../rollout/consume-groups.ts";
import { groupsQueue, judgementQueue, scoresQueue, sendAll } from "../run/queues.ts";
import { judgeScoringGroup } from "../scoring/consume-judgements.ts";
import { scoreScoringGroups } from "../scoring/consume-scores.ts";
import { BatchMemory } from "../scoring/held-trajectories.ts";
import { QUEUE_WORK } from "../scoring/scoring-pass.ts";
import { compactSegment } from "../trajectory/store.ts";
import { partOf, sideBySide } from "./side-by-side.ts";

const DEAD_LETTERS = "-dead";
const RETRY_AFTER_S = 1;
/** Milliseconds that an invocation waits in total for organisations that have used up their share of the process. */
const REST_MS = 200;
/** Reconciliation sends a start message again if it does not arrive for minutes. */
const LONGEST_DELAY_S = 60;
/**
 * A message needs at most 420: 400 trajectories or 26 objects, and the run's answers. Sending on the rest needs one more
 * for each queue.
 */
const SUBREQUESTS_BEFORE_LAST = LIMITS.subrequests - 420 - SHARDS;

export async function consume(batch: MessageBatch<RunMessage>, env: Env): Promise<void> {
  const subrequests = new Subrequests(LIMITS.subrequests, { waits: true });
  const memory = new BatchMemory();
  const dead = batch.queue.endsWith(DEAD_LETTERS);
  const handle = dead
    ? ({ body }: Message<RunMessage>) => record(env, batch.queue, body)
    : (message: Message<RunMessage>) => work(env, message, { subrequests, memory });
  const untried: Message<RunMessage>[] = [];
  const { sliceSteps } = isHeavy(batch.messages) ? QUEUE_WORK.heavy : QUEUE_WORK.light;
  let [steps, restMs] = [0, REST_MS];
  const settle = async (message: Message<RunMessage>) => {
    const rest = dead ? 0 : PROCESS_SCHEDULER.restOf(message.body.scope.orgId);
    // A wait that would not be enough only holds up the queue.
    const wait = rest <= restMs ? rest : 0;
    if (wait > 0) await scheduler.wait(wait);
    restMs -= wait;
    if (rest > wait || subrequests.count > SUBREQUESTS_BEFORE_LAST || steps >= sliceSteps) {
      untried.push(message);
      return;
    }
    try {
      steps += await handle(message);
      message.ack();
    } catch (thrown) {
      const { attempts, body } = message;
      logError("message failed", { ...idsOf(body), queue: batch.queue, attempt: attempts }, thrown);
      message.retry({ delaySeconds: RETRY_AFTER_S });
    }
  };
  const waiting = [...batch.messages];
  const handleAll = async () => {
    while (waiting.length > 0) await settle(takeNext(waiting));
  };
  const atOnce = dead ? 1 : sideBySide(batch.messages.map(({ body }) => partOf(body)));
  await Promise.all(Array.from({ length: atOnce }, handleAll));
  await sendOn(env, untried, subrequests);
}

/** Removes the first message of the organisation with the shortest rest; among equals, the one that computed least. */
function takeNext(waiting: Message<RunMessage>[]): Message<RunMessage> {
  const places = waiting.map(({ body: { scope } }, index) => {
    return { index, rest: PROCESS_SCHEDULER.restOf(scope.orgId), level: PROCESS_SCHEDULER.levelOf(scope.orgId) };
  });
  const [first] = places.sort((a, b) => a.rest - b.rest || a.level - b.level || a.index - b.index);
  const [next] = waiting.splice(first?.index ?? 0, 1);
  if (next === undefined) throw new Error("no message waits");
  return next;
}

/** All messages of a batch come from one queue, so the first one decides. */
function isHeavy([first]: readonly Message<RunMessage>[]): boolean {
  return first?.body.kind === "scores" && first.body.heavy === true;
}

/** Seconds, rounded up, for which the organisation of a message must not compute: until then no invocation needs it. */
function restOf({ scope }: RunMessage): number {
  return Math.min(LONGEST_DELAY_S, Math.ceil(PROCESS_SCHEDULER.restOf(scope.orgId) / 1000));
}

async function sendOn(env: Env, untried: readonly Message<RunMessage>[], subrequests: Subrequests): Promise<void> {
  const bodies = untried.map(({ body }) => body);
  // Those of runs of other shards are from an earlier release, which had one queue.
  const byQueue = Map.groupBy(bodies, (body) => queueOf(env, body));
  for (const [queue, of] of byQueue) await sendAll(queue, of, subrequests, restOf);
  for (const message of untried) message.ack();
}

function queueOf(env: Env, message: RunMessage): Queue {
  switch (message.kind) {
    case "groups":
      return groupsQueue(env, message);
    case "scores":
      return scoresQueue(env, message);
    case "segment":
      return env.RUN_SEGMENTS;
    case "judgement":
      return judgementQueue(env, message);
  }
}

/** Returns the steps of counted work that it took; 0 if it counts none. */
async function work(
  env: Env,
  { id, attempts: attempt, body }: Message<RunMessage>,
  { subrequests, memory }: { readonly subrequests: Subrequests; readonly memory: BatchMemory },
): Promise<number> {
  switch (body.kind) {
    case "groups":
      return await startGroups(env, body, Date.now(), subrequests);
    case "scores":
      return await scoreScoringGroups(env, body, subrequests, memory);
    case "segment":
      await compactSegment(env, body, subrequests);
      return 0;
    case "judgement":
      await judgeScoringGroup(env, body, { id, attempt, ...(body.pace && { pace: body.pace }) }, subrequests);
      return 0;
  }
}

async function record(env: Env, queue: string, message: RunMessage): Promise<number> {
  await runObject(env, message.scope, message.run_id).deadLetter(queue, message);
  return 0;
}
