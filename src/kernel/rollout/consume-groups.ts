/**
 * Consumer of `rollout-groups`: starts rollouts, each with a copy of its task row. It does not wait for rollouts. A
 * message that arrives twice, late, or after its run was cancelled starts nothing: the run answers which rollouts to
 * start.
 */

import { EnvError, isError, serializeError } from "../../contract/errors.ts";
import { LIMITS } from "../../contract/limits.ts";
import { baseCost, policyCosts } from "../../core/costs/run-costs.ts";
import type { EnvironmentCode, MadeTask } from "../../core/protocol/environment-code.ts";
import type { ForkPoint } from "../../core/rollout/fork.ts";
import { RowError, taskKey } from "../../core/rollout/task.ts";
import { charactersOf, sizeOf } from "../../core/size.ts";
import { groupSizeOf } from "../../core/training/members.ts";
import { type RowTexts, storedRows, taskOfGroup } from "../dataset/datasets.ts";
import { RowsMissing } from "../dataset/rows.ts";
import { pinnedEnvironment } from "../environment/environments.ts";
import { playerOf } from "../environment/make-task.ts";
import { GIVEN_UP, outsideQuarantine, Quarantine } from "../environment/quarantine.ts";
import { PROCESS_SCHEDULER, stepsOfTask } from "../kit/fair-scheduler.ts";
import { idsOf } from "../kit/log.ts";
import { rolloutShard, runObject, runOrGatherer } from "../kit/names.ts";
import { sha256Hex } from "../kit/secrets.ts";
import type { Subrequests } from "../kit/subrequests.ts";
import type { GatheredRpc } from "../messages/gathered.ts";
import {
  type GroupsMessage,
  type RolloutReport,
  type RolloutSpec,
  type RunSpec,
  START_MESSAGE_LIFE_MS,
  type Starter,
} from "../messages/wire.ts";
import { HeldOut, type KeyedTask, trainingTasks } from "../scoring/held-out.ts";
import { isScoredInPlace } from "../scoring/score-in-place.ts";
import { carryOver, isCarried, readForkPoint } from "../trajectory/carry-over.ts";

/** Uncounted work for a rollout with one turn (its object, its report, its score), about 2 ms. */
const STEPS_PER_ROLLOUT = 40_000;
/** Steps of making tasks after which the consumer waits for a scheduling turn. */
const STEPS_PER_TURN = 100_000;
/** The most characters of a task that is sent with its rollout. */
const MAX_SENT_TASK = 8192;

/** Full messages begin at every 25th place: their numbers must not share a divisor with the number of gatherers. */
function spread(group: number, slot: number): number {
  return Math.imul(group * LIMITS.groupSize + slot, 0x9e3779b1) >>> 16;
}

/** Returns the steps of counted work that it took. */
export async function startGroups(
  env: Env,
  message: GroupsMessage,
  now: number,
  subrequests: Subrequests,
): Promise<number> {
  // Reconciliation has sent a newer message long ago; storage freed since then must not run the rollout again.
  if (now - message.sent_at > START_MESSAGE_LIFE_MS) return 0;
  const [group = 0, slot = 0] = message.rollouts[0] ?? [];
  const run = () => runOrGatherer(env, message, message.gatherers, spread(group, slot));
  const places = message.rollouts.map(([group, slot, attempt]) => ({ group, slot, attempt }));
  const admission = await subrequests.object(() => run().admit(places));
  if (admission === null || admission.admitted.length === 0) return 0;
  const { spec } = admission;
  const carried = admission.admitted.filter((member) => isCarried(spec, member));
  if (carried.length > 0) await carryOver(env, { run, spec, members: carried }, subrequests);
  const admitted = admission.admitted.filter((member) => !isCarried(spec, member));
  const free = admitted.filter(({ quarantine }) => quarantine !== true);
  const begin = (members: readonly Starter[]) => beginRollouts(env, { message, run, spec }, members, subrequests);
  let steps = free.length > 0 ? await outsideQuarantine(message.scope.orgId, () => begin(free)) : 0;
  for (const member of admitted.filter(({ quarantine }) => quarantine === true)) {
    const { group, slot, attempt } = member;
    const asked = () => runObject(env, message.scope, message.run_id);
    const quarantine = new Quarantine(env, asked, `start/${group}/${slot}/${attempt}`, idsOf(message));
    // All of it is watched: reading the row, and building its task.
    const begun = await quarantine.run(() => quarantine.computing(() => begin([member])));
    if (begun !== GIVEN_UP) steps += begun;
    await quarantine.end();
  }
  return steps;
}

interface Admitted {
  readonly message: GroupsMessage;
  /** A new stub for each call. */
  readonly run: () => GatheredRpc;
  readonly spec: RunSpec;
}

async function beginRollouts(
  env: Env,
  { message, run, spec }: Admitted,
  admitted: readonly Starter[],
  subrequests: Subrequests,
): Promise<number> {
  const environment = await pinnedOrError(env, spec);
  if (environment instanceof EnvError) {
    const failed = admitted.map((member) => failedAtStart(member, "environment", environment));
    await subrequests.object(() => run().answered(failed));
    return 0;
  }
  const stored = await storedOrMissing(env, spec, environment, admitted, subrequests);
  const orders: RolloutSpec[] = [];
  const failures: RolloutReport[] = [];
  const { orgId } = spec.scope;
  let [steps, uncounted, held] = [0, 0, 0];
  const send = async () => {
    held = 0;
    await subrequests.objectAll(startsOf(orders.splice(0)), async ({ host: shard, of }) => {
      await rolloutShard(env, spec.scope, spec.run_id, shard, spec.fleet).start(of, message.sent_at);
    });
  };
  for (const member of admitted) {
    const order = await orderOf(spec, environment, member, stored, message.gatherers);
    const row = "row" in order ? JSON.stringify(order.row) : "";
    const { characters = row.length } = "row" in order ? order : {};
    // What it starts with in addition to its row: its prompt, or the turns of another rollout.
    const made = stepsOfTask(row, characters - row.length);
    steps += made;
    uncounted += made;
    // Small tasks share one scheduling turn.
    if (uncounted > STEPS_PER_TURN) {
      await PROCESS_SCHEDULER.spend(orgId, uncounted, true);
      uncounted = 0;
    }
    PROCESS_SCHEDULER.charge(orgId, STEPS_PER_ROLLOUT);
    if ("failure" in order) failures.push(order);
    else orders.push(order);
    held += characters;
    // Large tasks are not held in memory all at once.
    if (held > LIMITS.startedCharacters) await send();
  }
  // The consumer waited for the organisation's share before this message. A wait here would hold up the queue.
  PROCESS_SCHEDULER.charge(orgId, uncounted);
  if (failures.length > 0) await subrequests.object(() => run().answered(failures));
  await send();
  return steps;
}

/** As for a rollout that has begun, an error of the environment's own code is an end, and not a reason to try again. */
async function pinnedOrError(env: Env, spec: RunSpec): Promise<EnvironmentCode | EnvError | null> {
  try {
    return await pinnedEnvironment(env, spec);
  } catch (thrown) {
    if (isError(thrown, EnvError)) return thrown;
    throw thrown;
  }
}

/** The calls that start these rollouts: for each object together, as many as fit into one call. */
function startsOf(orders: readonly RolloutSpec[]): { readonly host: number; readonly of: readonly RolloutSpec[] }[] {
  return [...Map.groupBy(orders, ({ host: shard }) => shard)].flatMap(([shard, members]) => {
    const starts: RolloutSpec[][] = [];
    let characters = Number.POSITIVE_INFINITY;
    for (const order of members) {
      const size = sizeOf(order);
      characters += size;
      if (characters > LIMITS.startedCharacters) {
        starts.push([]);
        characters = size;
      }
      starts.at(-1)?.push(order);
    }
    return starts.map((of) => ({ host: shard, of }));
  });
}

/** For a training run: the task of each example, or why it has none. */
interface TrainingTasks {
  readonly tasks: ReadonlyMap<number, KeyedTask | RowError | HeldOut>;
}
/** The sources of rollouts: rows of the run's dataset, or the turns that a forked run continues from. */
type Stored = RowTexts | ForkPoint | TrainingTasks;

/** If the rows are gone, the run's rollouts end with that reason: they will not come back. */
async function storedOrMissing(
  env: Env,
  spec: RunSpec,
  environment: EnvironmentCode | null,
  admitted: readonly Starter[],
  subrequests: Subrequests,
): Promise<Stored | RowsMissing> {
  const { fork } = spec;
  const groups = admitted.map(({ group }) => group);
  try {
    if (spec.training !== undefined) {
      if (environment === null) return { tasks: new Map() };
      const examples = admitted.map(exampleOf);
      return { tasks: await trainingTasks(env, spec, environment, examples, subrequests) };
    }
    return fork === undefined
      ? await storedRows(env, spec, groups, subrequests)
      : await readForkPoint(env, fork, subrequests);
  } catch (thrown) {
    if (thrown instanceof RowsMissing) return thrown;
    throw thrown;
  }
}

/** What the rollout is started with; or a report of its failure if it cannot be started. */
async function orderOf(
  spec: RunSpec,
  environment: EnvironmentCode | null,
  member: Starter,
  stored: Stored | RowsMissing,
  gatherers: number | undefined,
): Promise<RolloutSpec | RolloutReport> {
  const { group, slot, attempt, rollout_id, host: shard } = member;
  const { id, version } = spec.environment;
  if (shard === null) throw new TypeError(`${rollout_id} has no object to run it`);
  if (environment === null) {
    const gone = new EnvError(`this deployment does not have ${id}@${version} with the run's pinned code`);
    return failedAtStart(member, "environment_changed", gone, "environment_changed");
  }
  if (stored instanceof RowsMissing) {
    return failedAtStart(member, "environment", stored, "dataset_missing");
  }
  try {
    const task = await taskOf(spec, environment, member, stored);
    const { scope, run_id, environment_args, model, endpoint_id, sampling, limits, seed } = spec;
    const pinned = { environment: spec.environment, environment_args, ...(spec.needs && { needs: spec.needs }) };
    const call = { model, endpoint_id, ...(spec.fleet && { fleet: spec.fleet }), sampling, limits, seed };
    const place = { group, slot, attempt, rollout_id, host: shard, ...(gatherers !== undefined && { gatherers }) };
    const { policy_version, policy_generation = 0 } = member;
    const dispatched = policy_version === undefined ? {} : { policy_version, policy_generation };
    const scored_in_place = isScoredInPlace(spec, environment);
    const address = spec.money?.addresses?.policy ?? null;
    const agent = spec.agent === undefined ? {} : { agent: spec.agent };
    const cache = spec.answer_cache === true ? { answer_cache: true } : {};
    const prompts = spec.prompts === undefined ? {} : { prompts: spec.prompts };
    const paid = {
      ...call,
      ...agent,
      ...cache,
      ...prompts,
      ...(address !== null && { address }),
      ...budgetOf(spec, member),
    };
    const together = togetherOf(spec, task);
    return { scope, run_id, ...place, ...task, ...pinned, ...paid, ...dispatched, scored_in_place, ...together };
  } catch (thrown) {
    if (!isAboutTheRow(thrown)) throw thrown;
    return failedAtStart(member, "environment", thrown);
  }
}

/** How many rollouts are scored with it, if its group is scored as a whole. */
function togetherOf(
  spec: RunSpec,
  { member }: Awaited<ReturnType<typeof taskOf>>,
): Pick<RolloutSpec, "scored_together"> {
  return spec.whole_groups ? { scored_together: groupSizeOf(spec, member ?? null) } : {};
}

function budgetOf(spec: RunSpec, { ceiling: quota }: Starter): Pick<RolloutSpec, "budget"> {
  if (quota === undefined) return {};
  return { budget: { ceiling: quota, base: baseCost(spec, false), prices: policyCosts(spec) } };
}

function isAboutTheRow(thrown: unknown): thrown is Error {
  return thrown instanceof Error && (thrown.name === "RowError" || thrown instanceof HeldOut);
}

/** The task of a group with a copy of its row. In a forked run: the task of the original rollout, with its turns. */
async function taskOf(
  spec: RunSpec,
  environment: EnvironmentCode,
  member: Starter,
  stored: Stored,
): Promise<Pick<RolloutSpec, "example_id" | "task_key" | "row" | "task" | "from" | "member" | "characters">> {
  if ("turn" in stored) {
    const { example_id, task_key, task } = stored;
    const whose = await memberOf(environment, { example_id, row: task });
    return { example_id, task_key, row: task, from: stored, characters: sizeOf(stored), ...whose };
  }
  if ("tasks" in stored) {
    const made = stored.tasks.get(exampleOf(member));
    if (made === undefined || made instanceof Error) throw made ?? new HeldOut(member.group);
    return { ...startOf(made), task_key: made.task_key };
  }
  // If the row makes no task, its rollout ends here with the reason, rather than in an object that cannot begin.
  const made = await taskOfGroup(spec, environment, member.group, stored);
  return { ...startOf(made), task_key: await taskKey(made.row, async (text) => sha256Hex(text)) };
}

function startOf({ row, task, member }: MadeTask) {
  const { example_id, prompt, answer, info } = task;
  const characters = sizeOf(row) + charactersOf(prompt) + answer.length + sizeOf([info]);
  // What a large row makes is large too, and needs no second measuring.
  const sent = characters <= MAX_SENT_TASK && sizeOf(task) <= MAX_SENT_TASK ? { task } : {};
  return { example_id, row, ...sent, characters, ...(member !== null && { member }) };
}

/** Empty if the row belongs to no environment of the group: playing it will report that. */
async function memberOf(
  environment: EnvironmentCode,
  rollout: Pick<RolloutSpec, "example_id" | "row">,
): Promise<Pick<RolloutSpec, "member">> {
  try {
    const { member } = await playerOf(environment, rollout);
    return member === null ? {} : { member };
  } catch (thrown) {
    if (thrown instanceof RowError) return {};
    throw thrown;
  }
}

function exampleOf({ example_index, group }: Starter): number {
  return example_index ?? group;
}

/** The report of a rollout that ends before it has a task. `stops`: the error code if it ends the whole run. */
function failedAtStart(
  { group, slot, attempt, rollout_id }: Starter,
  failure: "environment" | "environment_changed",
  error: Error,
  stops: string | null = null,
): RolloutReport {
  const now = Date.now();
  const serialized = serializeError(error);
  return {
    group,
    slot,
    attempt,
    rollout_id,
    example_id: group,
    task_key: "",
    failure,
    cancelled: null,
    error: serialized,
    stop_run: stops === null ? null : { code: stops, message: serialized.message },
    digest: null,
    bytes: 0,
    trajectory: null,
    stop_condition: "has_error",
    is_truncated: false,
    turns: 0,
    calls: 0,
    usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 },
    started_at: now,
    ended_at: now,
  };
}
