/**
 * `run-segments`: folds finished rollouts into one immutable R2 object, a line each: the row with its scores, and the
 * trajectory. The single trajectories go once the run knows the segment.
 */
import type { Trajectory } from "../../contract/trajectory.ts";
import type { RolloutRecord } from "../contract/run-records.ts";
import type { SegmentMessage, StoredTrajectory } from "../contract/wire.ts";
import { runObject, segmentKey } from "../kit/names.ts";
import { sha256Hex } from "../kit/secrets.ts";
import type { Subrequests } from "../kit/subrequests.ts";
import { dropTrajectories, trajectoryText } from "./store.ts";

/** One line of a segment. A rollout that never had a trajectory has none here. */
export interface SegmentLine {
  readonly rollout_id: string;
  readonly trajectory: Trajectory | null;
}

export async function foldSegment(env: Env, message: SegmentMessage, subrequests: Subrequests): Promise<void> {
  const run = runObject(env, message.scope, message.run_id);
  const records = await subrequests.object(() => run.segmentRows(message.segment));
  if (records === null) return;
  const lines = await subrequests.six(records, (record) => lineOf(env, message, record, subrequests));
  const text = lines.join("\n");
  const sha256 = sha256Hex(text);
  const key = segmentKey(message.scope, message.run_id, sha256);
  await subrequests.fetch(() => env.STORE.put(key, text, { sha256 }));
  await subrequests.object(() => run.folded(message.segment, key));
  const stored = records.map(storedOf);
  await subrequests.fetch(() => dropTrajectories(env, message, stored));
}

async function lineOf(
  env: Env,
  message: SegmentMessage,
  record: RolloutRecord,
  subrequests: Subrequests,
): Promise<string> {
  const { id, digest } = record.entry;
  const text = await trajectoryText(env, message, storedOf(record), subrequests);
  if (text === null && digest !== null) throw new Error(`trajectory of ${id} is missing`);
  // A SegmentLine; the trajectory is JSON without a line break already.
  return `{"rollout_id":${JSON.stringify(id)},"trajectory":${text}}`;
}

function storedOf({ entry: { digest }, text }: RolloutRecord): StoredTrajectory {
  return { digest, text };
}
