/**
 * Rollouts that sample nothing: each takes over the trajectory of another rollout, and is scored from it.
 *
 * Invariants. No object is used and no model is called. The report is made here, and the same source always gives the
 * same report, however often the message arrives. A rollout's cost was paid where it was sampled. If the source failed
 * or was cancelled, the rollout ends in the same way; if the source has no trajectory, the rollout fails with that
 * reason.
 */
import {
  type CancelReason,
  type FailureClass,
  InfraError,
  type SerializedError,
  serializeError,
} from "../../contract/errors.ts";
import type { Scope } from "../../contract/scope.ts";
import type { Trajectory } from "../../contract/trajectory.ts";
import type { ForkPoint } from "../../core/rollout/fork.ts";
import { RowsMissing } from "../dataset/rows.ts";
import { forkKey, runObject } from "../kit/names.ts";
import { sha256Hex } from "../kit/secrets.ts";
import type { Subrequests } from "../kit/subrequests.ts";
import type { GatheredRpc } from "../messages/gathered.ts";
import type { SourcePage } from "../messages/rpc.ts";
import type { RolloutRecord } from "../messages/run-records.ts";
import type { RolloutReport, RunSpec, SourceSlot, Starter } from "../messages/wire.ts";
import { bareReport, storableTrajectory, textOfTask } from "./rollout-report.ts";
import { readTrajectory, storeTrajectory, trajectoriesIn } from "./store.ts";

export interface Source {
  /** Null if it was never dispatched. */
  readonly record: RolloutRecord | null;
  /** Null if it had none, or it was deleted. */
  readonly trajectory: Trajectory | null;
  /** Why its run dispatched nothing more, if it was cancelled. */
  readonly cancelled: CancelReason | null;
}

interface Address {
  readonly scope: Scope;
  readonly run_id: string;
}

/** A trajectory may be moved into a segment between reading the row and the trajectory: then it is looked up again. */
const LOOKS = 3;

const NO_SOURCE: Source = { record: null, trajectory: null, cancelled: null };

/** True if the rollout takes over another one's trajectory. */
export function isCarried(spec: RunSpec, member: Starter): boolean {
  return member.carries !== undefined || spec.rescore !== undefined;
}

interface CarriedOver {
  readonly run: () => GatheredRpc;
  readonly spec: RunSpec;
  readonly members: readonly Starter[];
}

/** Reports all of them to their run. */
export async function carryOver(
  env: Env,
  { run, spec, members }: CarriedOver,
  subrequests: Subrequests,
): Promise<void> {
  for (const [runId, taken] of bySource(spec, members)) {
    const places = taken.map(sourcePlace);
    const sources = await readSources(env, { scope: spec.scope, run_id: runId }, places, subrequests);
    const reports = await subrequests.six(taken, (member) =>
      carriedReport(env, spec, member, sources[taken.indexOf(member)] ?? NO_SOURCE, subrequests),
    );
    await subrequests.objectAll(reports, async (report) => {
      const [answer] = await run().answered([report]);
      if (answer?.refused !== undefined) await run().answered([bareReport(report, answer.refused)]);
    });
  }
}

const NO_USAGE = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };

/** Members by the run of their source: their own run (an earlier attempt), or the run that is rescored. */
function bySource(spec: RunSpec, members: readonly Starter[]): [string, Starter[]][] {
  const own = members.filter(({ carries }) => carries !== undefined);
  const others = members.filter(({ carries }) => carries === undefined);
  const from: [string, Starter[]][] = [
    [spec.run_id, own],
    [spec.rescore?.run_id ?? spec.run_id, others],
  ];
  return from.filter(([, taken]) => taken.length > 0);
}

function sourcePlace({ carries, group, slot }: Starter): SourceSlot {
  return carries ?? { group, slot, attempt: null };
}

async function carriedReport(
  env: Env,
  spec: RunSpec,
  member: Starter,
  source: Source,
  subrequests: Subrequests,
): Promise<RolloutReport> {
  const { record, trajectory } = source;
  const report = { ...emptyReport(member), ...endOf(source) };
  if (record === null) return report;
  const { example_id, task_key, task_text, member: whose, started_at, ended_at } = record.entry;
  const known = {
    ...report,
    example_id: example_id ?? member.group,
    task_key: task_key ?? "",
    ...(task_text !== null && { task_text }),
    ...(whose && { member: whose }),
    started_at: started_at ?? report.started_at,
    ended_at: ended_at ?? report.ended_at,
  };
  if (trajectory === null) return known;
  const stored = storableTrajectory(carry(trajectory, member));
  const { digest, text, said } = stored;
  const inline = await subrequests.fetch(() => storeTrajectory(env, spec, digest, text));
  return {
    ...known,
    ...textOfTask(trajectory),
    ...{ digest, bytes: text.length, trajectory: inline, said },
    stop_condition: trajectory.stop_condition,
    is_truncated: trajectory.is_truncated,
  };
}

/** The trajectory as the member's own, without costs. */
function carry(trajectory: Trajectory, { rollout_id }: Starter): Trajectory {
  const rescored_from = trajectory.rollout_id;
  return { ...trajectory, rollout_id, rescored_from, usage: NO_USAGE, calls: 0 };
}

/** How a rollout with this source ends; all null if it waits for scores now. */
function endOf({ record, trajectory, cancelled }: Source): {
  failure: FailureClass | null;
  cancelled: CancelReason | null;
  error: SerializedError | null;
} {
  if (record === null) {
    if (cancelled !== null) return { failure: null, cancelled, error: null };
    return lost("its run ended before it was dispatched: there is nothing to score");
  }
  const { outcome, reason, error, id } = record.entry;
  const as = error === null ? null : (JSON.parse(error) as SerializedError);
  // Written by this platform, so the reason fits the outcome.
  if (outcome === "cancelled") {
    return { failure: null, cancelled: reason as CancelReason, error: as };
  }
  if (outcome === "failed") return { failure: reason as FailureClass, cancelled: null, error: as };
  return trajectory === null
    ? lost(`the trajectory of ${id} was deleted from the store`)
    : { failure: null, cancelled: null, error: null };
}

function lost(message: string) {
  const error = serializeError(new InfraError(message));
  return { failure: "platform", cancelled: null, error } as const;
}

function emptyReport({ group, slot, attempt, rollout_id }: Starter): RolloutReport {
  const now = Date.now();
  return {
    ...{ group, slot, attempt, rollout_id, example_id: group, task_key: "" },
    ...{ failure: null, cancelled: null, error: null, stop_run: null },
    ...{ digest: null, bytes: 0, trajectory: null, stop_condition: null, is_truncated: false },
    ...{ turns: 0, calls: 0, usage: NO_USAGE, started_at: now, ended_at: now },
  };
}

/** Stores what the rollouts of a forked run begin with, in R2, before the run is created. Returns the key. */
export async function storeForkPoint(
  env: Env,
  scope: Scope,
  runId: string,
  point: ForkPoint,
  subrequests: Subrequests,
): Promise<string> {
  const text = JSON.stringify(point);
  const sha256 = sha256Hex(text);
  const key = forkKey(scope, runId, sha256);
  await subrequests.fetch(() => env.STORE.put(key, text, { sha256 }));
  return key;
}

/** Throws `RowsMissing` if it was deleted. */
export async function readForkPoint(
  env: Env,
  { key }: { readonly key: string },
  subrequests: Subrequests,
): Promise<ForkPoint> {
  return await subrequests.fetch(async () => {
    const object = await env.STORE.get(key);
    if (object === null) throw new RowsMissing(key);
    return await object.json<ForkPoint>();
  });
}

/**
 * The sources at these slots, in their order, wherever each trajectory is now: in a segment, in R2, or in the run's
 * object. A run that was never created gives empty sources.
 */
export async function readSources(
  env: Env,
  address: Address,
  places: readonly SourceSlot[],
  subrequests: Subrequests,
): Promise<Source[]> {
  const run = runObject(env, address.scope, address.run_id);
  for (let look = 1; ; look += 1) {
    const page = await subrequests.object(() => run.sources(places));
    if (page === null) return places.map(() => NO_SOURCE);
    const sources = await sourcesOf(env, address, page, subrequests);
    const moved = sources.some(({ record, trajectory }) => record?.entry.digest != null && trajectory === null);
    if (!moved || look === LOOKS) return sources;
  }
}

async function sourcesOf(
  env: Env,
  address: Address,
  { records, segments, cancelled }: SourcePage,
  subrequests: Subrequests,
): Promise<Source[]> {
  const wanted = new Set(records.flatMap((record) => (record === null ? [] : [record.entry.id])));
  const folded = await trajectoriesIn(env, address.scope, segments, wanted, { subrequests, mayBeGone: true });
  return await subrequests.six(records, async (record) => {
    if (record === null) return { record, trajectory: null, cancelled };
    const { id, digest } = record.entry;
    const stored = { digest, text: record.text };
    const trajectory = folded.get(id) ?? (await readTrajectory(env, address, stored, subrequests));
    return { record, trajectory, cancelled };
  });
}
