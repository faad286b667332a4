/**
 * Where finished trajectories are stored. A small one is sent with its rollout's report and stays in the run's object
 * until it is compacted; a large one is an R2 object, named by the hash of its content. Both are compacted into
 * segments.
 */
import { LIMITS } from "../../contract/limits.ts";
import type { Scope } from "../../contract/scope.ts";
import type { Trajectory } from "../../contract/trajectory.ts";
import { exceedsUtf8 } from "../../core/size.ts";
import { PROCESS_SCHEDULER, stepsOfText } from "../kit/fair-scheduler.ts";
import { runObject, segmentKey, trajectoryKey } from "../kit/names.ts";
import { sha256Hex } from "../kit/secrets.ts";
import { notifyOfSegment } from "../kit/slice-hooks.ts";
import type { Subrequests } from "../kit/subrequests.ts";
import type { RolloutLeft, SegmentEntry } from "../messages/run-records.ts";
import type { SegmentMessage, StoredTrajectory } from "../messages/wire.ts";

/** One line of a segment. `trajectory` is null for a rollout without one. */
export interface SegmentLine {
  readonly rollout_id: string;
  readonly trajectory: Trajectory | null;
}

interface Owner {
  readonly scope: Scope;
  readonly run_id: string;
}

/** Returns the text to send with the report, or null if it was stored in R2. */
export async function storeTrajectory(
  env: Env,
  { scope, run_id }: Owner,
  digest: string,
  text: string,
): Promise<string | null> {
  if (!exceedsUtf8(text, LIMITS.inlineTrajectoryBytes)) return text;
  // R2 stores the hash, so an audit can check the content from a list of keys.
  await env.STORE.put(trajectoryKey(scope, run_id, digest), text, { sha256: digest });
  return null;
}

/** Null if there is none, or it was compacted meanwhile. */
export async function readTrajectory(...from: Parameters<typeof trajectoryText>): Promise<Trajectory | null> {
  const text = await trajectoryText(...from);
  if (text === null) return null;
  const [, { scope }] = from;
  await PROCESS_SCHEDULER.spend(scope.orgId, stepsOfText(text.length), true);
  return JSON.parse(text) as Trajectory;
}

/**
 * The trajectories of these rollouts (by id) that are in these segments. One segment is in memory at a time, and only the
 * wanted lines are parsed, since a segment has up to a hundred. A missing segment gives none if `mayBeGone`; else this
 * throws.
 */
export async function trajectoriesIn(
  env: Env,
  { orgId }: Scope,
  segments: readonly SegmentEntry[],
  wanted: ReadonlySet<string>,
  { subrequests, mayBeGone = false }: { readonly subrequests: Subrequests; readonly mayBeGone?: boolean },
): Promise<Map<string, SegmentLine["trajectory"]>> {
  const trajectories = new Map<string, SegmentLine["trajectory"]>();
  for (const { key } of segments) {
    if (key === null) continue;
    const object = await subrequests.fetch(() => env.STORE.get(key));
    if (object === null && !mayBeGone) throw new Error(`segment ${key} is missing`);
    const text = object === null ? "" : await object.text();
    for (const line of text.split("\n").filter((one) => wanted.has(idOf(one)))) {
      await PROCESS_SCHEDULER.spend(orgId, stepsOfText(line.length));
      const { rollout_id, trajectory } = JSON.parse(line) as SegmentLine;
      trajectories.set(rollout_id, trajectory);
    }
  }
  return trajectories;
}

/** A line begins with its rollout's id. */
function idOf(line: string): string {
  return /^\{"rollout_id":"([^"]*)"/.exec(line)?.[1] ?? "";
}

/** The stored text, for callers that only pass it on: parsed, a large trajectory takes several times its text. */
export async function trajectoryText(
  env: Env,
  { scope, run_id }: Owner,
  { digest, text }: StoredTrajectory,
  subrequests: Subrequests,
): Promise<string | null> {
  if (text !== null || digest === null) return text;
  return await subrequests.inTurn(async () => {
    const object = await env.STORE.get(trajectoryKey(scope, run_id, digest));
    return object === null ? null : await object.text();
  });
}

/** Deletes the R2 objects of trajectories that are compacted now. */
export async function dropTrajectories(
  env: Env,
  { scope, run_id }: Owner,
  folded: readonly StoredTrajectory[],
): Promise<void> {
  const keys = folded.flatMap(({ digest, text }) =>
    digest === null || text !== null ? [] : [trajectoryKey(scope, run_id, digest)],
  );
  if (keys.length > 0) await env.STORE.delete(keys);
}

/** Consumer of `run-segments`: compacts a segment, then exports it to the trace. */
export async function compactSegment(env: Env, message: SegmentMessage, subrequests: Subrequests): Promise<void> {
  await notifyOfSegment(env, message, await fold(env, message, subrequests), subrequests);
}

/**
 * Compacts finished rollouts into one immutable R2 object, one line each, with rollout id and trajectory. The single
 * trajectories are deleted after the run has stored the segment's key. Returns the lines; null if it was compacted
 * before.
 */
async function fold(env: Env, message: SegmentMessage, subrequests: Subrequests): Promise<string[] | null> {
  const run = runObject(env, message.scope, message.run_id);
  const records = await subrequests.object(() => run.segmentRows(message.segment));
  if (records === null) return null;
  const lines = await subrequests.six(records, (left) => lineOf(env, message, left, subrequests));
  const text = lines.join("\n");
  const sha256 = sha256Hex(text);
  const key = segmentKey(message.scope, message.run_id, sha256);
  await subrequests.fetch(() => env.STORE.put(key, text, { sha256 }));
  await subrequests.object(() => run.folded(message.segment, key));
  await subrequests.fetch(() => dropTrajectories(env, message, records));
  return lines;
}

async function lineOf(env: Env, message: SegmentMessage, left: RolloutLeft, subrequests: Subrequests): Promise<string> {
  const { id, digest } = left;
  const text = await trajectoryText(env, message, left, subrequests);
  if (text === null && digest !== null) throw new Error(`trajectory of ${id} is missing`);
  // A SegmentLine. The trajectory is JSON already, without line breaks.
  return `{"rollout_id":${JSON.stringify(id)},"trajectory":${text}}`;
}
