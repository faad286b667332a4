/** Messages of a run for its queues. They hold ids only; a message is under 1 kB, a batch under 100 messages. */

import { fetches } from "../../core/environments/capabilities.ts";
import { shardOf } from "../../core/run-queues.ts";
import { largestGroup } from "../../core/training/members.ts";
import type { Subrequests } from "../kit/subrequests.ts";
import type {
  GroupsMessage,
  JudgementMessage,
  RolloutSlot,
  RunMessage,
  RunSpec,
  ScoresMessage,
} from "../messages/wire.ts";

/** Slots per message: about 12 bytes each. */
export const PLACES_PER_MESSAGE = 25;
export const SCORING_GROUPS_PER_MESSAGE = 25;
/** The consumer reads each trajectory with a subrequest, and its subrequests are limited. */
const TRAJECTORIES_PER_MESSAGE = 400;
const MESSAGES_PER_BATCH = 100;

/** The run that messages are about, and how many gatherers it has. */
export type MessagesOf = Pick<GroupsMessage, "scope" | "run_id" | "gatherers">;

/** `gatherers`: 0 if the run's object is called without one. */
export function messagesOf({ scope, run_id }: RunSpec, gatherers: number): MessagesOf {
  return { scope, run_id, ...(gatherers > 0 && { gatherers }) };
}

export function groupsMessages(
  spec: RunSpec,
  places: readonly RolloutSlot[],
  sentAt: number,
  gatherers = 0,
): GroupsMessage[] {
  return chunksOf(places, PLACES_PER_MESSAGE).map((chunk) => ({
    kind: "groups",
    ...messagesOf(spec, gatherers),
    sent_at: sentAt,
    rollouts: chunk.map(({ group, slot, attempt }) => [group, slot, attempt] as const),
    ...(mayCarry(spec, chunk) && { carries: true }),
  }));
}

function mayCarry({ fork, rescore }: RunSpec, places: readonly RolloutSlot[]): boolean {
  return fork !== undefined || rescore !== undefined || places.some(({ attempt }) => attempt > 0);
}

export function groupsQueue(env: Env, { run_id }: Pick<GroupsMessage, "run_id">): Queue {
  const others = [env.ROLLOUT_GROUPS_1, env.ROLLOUT_GROUPS_2, env.ROLLOUT_GROUPS_3];
  return others[shardOf(run_id) - 1] ?? env.ROLLOUT_GROUPS;
}

export function scoresQueue(env: Env, { run_id, heavy }: Pick<ScoresMessage, "run_id" | "heavy">): Queue {
  if (heavy) return env.ROLLOUT_SCORES_HEAVY;
  const others = [env.ROLLOUT_SCORES_1, env.ROLLOUT_SCORES_2, env.ROLLOUT_SCORES_3];
  return others[shardOf(run_id) - 1] ?? env.ROLLOUT_SCORES;
}

/** How many scoring groups one message names. */
export function scoringGroupsPerMessage(spec: RunSpec): number {
  const members = membersOf(spec);
  return Math.max(1, Math.min(SCORING_GROUPS_PER_MESSAGE, Math.floor(TRAJECTORIES_PER_MESSAGE / members)));
}

function membersOf(spec: RunSpec): number {
  return spec.whole_groups ? largestGroup(spec) : 1;
}

export function scoresMessages(spec: RunSpec, scoringGroups: readonly number[], gatherers = 0): ScoresMessage[] {
  return chunksOf([...new Set(scoringGroups)], scoringGroupsPerMessage(spec)).map((chunk) => ({
    kind: "scores",
    ...messagesOf(spec, gatherers),
    units: chunk,
    ...(needsNoServer(spec) && { members: membersOf(spec) }),
  }));
}

/** Scores that call other services share their connections, and their time is limited. */
function needsNoServer({ needs }: RunSpec): boolean {
  return needs !== undefined && !fetches(needs);
}

export function judgementMessages(
  spec: RunSpec,
  scoringGroups: readonly Pick<JudgementMessage, "unit" | "pace">[],
  gatherers = 0,
): JudgementMessage[] {
  const members = membersOf(spec);
  const of = messagesOf(spec, gatherers);
  return scoringGroups.map((scoringGroup) => ({ kind: "judgement", ...of, ...scoringGroup, members }));
}

/**
 * The queue of a scoring group's judgement: the queue of silent judges, or one of four queues for slow judges, or one
 * of four for quick judges. The same scoring group always gets the same of the four; those of a run get the four in
 * turn.
 */
export function judgementQueue(
  env: Env,
  { run_id, unit: scoringGroup, pace }: Pick<JudgementMessage, "run_id" | "unit" | "pace">,
): Queue {
  if (pace === "silent") return env.ROLLOUT_JUDGEMENTS_SILENT;
  // The last character of an id is random.
  const at = (run_id.charCodeAt(run_id.length - 1) + scoringGroup) % 4;
  if (pace === "slow") {
    const others = [env.ROLLOUT_JUDGEMENTS_SLOW_1, env.ROLLOUT_JUDGEMENTS_SLOW_2, env.ROLLOUT_JUDGEMENTS_SLOW_3];
    return others[at] ?? env.ROLLOUT_JUDGEMENTS_SLOW;
  }
  const others = [env.ROLLOUT_JUDGEMENTS_1, env.ROLLOUT_JUDGEMENTS_2, env.ROLLOUT_JUDGEMENTS_3];
  return others[at] ?? env.ROLLOUT_JUDGEMENTS;
}

export async function sendJudgements(
  env: Env,
  messages: readonly JudgementMessage[],
  subrequests: Subrequests,
): Promise<void> {
  const byQueue = Map.groupBy(messages, (message) => judgementQueue(env, message));
  for (const [queue, of] of byQueue) await sendAll(queue, of, subrequests);
}

export async function sendAll<Message extends RunMessage>(
  queue: Queue,
  messages: readonly Message[],
  subrequests: Subrequests,
  delayOf: (message: Message) => number = () => 0,
): Promise<void> {
  for (const batch of chunksOf(messages, MESSAGES_PER_BATCH)) {
    const requests = batch.map((body) => ({ body, delaySeconds: delayOf(body) }));
    await subrequests.fetch(() => queue.sendBatch(requests));
  }
}

export function chunksOf<Item>(items: readonly Item[], size: number): Item[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, index) =>
    items.slice(index * size, (index + 1) * size),
  );
}
