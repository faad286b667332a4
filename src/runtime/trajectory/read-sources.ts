/** What ended rollouts left behind, wherever it is by now: in a segment, in R2 by itself, or in the run's object. */
import type { CancelReason } from "../../contract/errors.ts";
import type { Scope } from "../../contract/scope.ts";
import type { Trajectory } from "../../contract/trajectory.ts";
import type { SourcePage } from "../contract/rpc.ts";
import type { RolloutRecord, SegmentEntry } from "../contract/run-records.ts";
import type { SourcePlace } from "../contract/wire.ts";
import { runObject } from "../kit/names.ts";
import type { Subrequests } from "../kit/subrequests.ts";
import type { SegmentLine } from "./consume-segments.ts";
import { readTrajectory } from "./store.ts";

export interface Source {
  /** Null where none was ever dispatched. */
  readonly record: RolloutRecord | null;
  /** Null where it left none, or none is there any more. */
  readonly trajectory: Trajectory | null;
  /** Why its run dispatched nothing more, where somebody cancelled it. */
  readonly cancelled: CancelReason | null;
}

interface Address {
  readonly scope: Scope;
  readonly run_id: string;
}

/** A trajectory may move into a segment between our look at the rows and our read: then it is looked up once more. */
const LOOKS = 3;

/** In the order of the places. Of a run nobody created nothing was ever dispatched. */
export async function readSources(
  env: Env,
  address: Address,
  places: readonly SourcePlace[],
  subrequests: Subrequests,
): Promise<Source[]> {
  const run = runObject(env, address.scope, address.run_id);
  for (let look = 1; ; look += 1) {
    const page = await subrequests.object(() => run.sources(places));
    if (page === null) return places.map(() => NEVER);
    const sources = await sourcesOf(env, address, page, subrequests);
    const moved = sources.some(({ record, trajectory }) => record?.entry.digest != null && trajectory === null);
    if (!moved || look === LOOKS) return sources;
  }
}

const NEVER: Source = { record: null, trajectory: null, cancelled: null };

async function sourcesOf(
  env: Env,
  address: Address,
  { records, segments, cancelled }: SourcePage,
  subrequests: Subrequests,
): Promise<Source[]> {
  const wanted = new Set(records.flatMap((record) => (record === null ? [] : [record.entry.id])));
  const folded = await readLines(env, segments, wanted, subrequests);
  return await subrequests.six(records, async (record) => {
    if (record === null) return { record, trajectory: null, cancelled };
    const { id, digest } = record.entry;
    const stored = { digest, text: record.text };
    const trajectory = folded.get(id) ?? (await readTrajectory(env, address, stored, subrequests));
    return { record, trajectory, cancelled };
  });
}

/** Only the lines that are wanted are parsed: a segment holds a hundred. One that is gone holds none. */
async function readLines(
  env: Env,
  segments: readonly SegmentEntry[],
  wanted: ReadonlySet<string>,
  subrequests: Subrequests,
): Promise<Map<string, Trajectory>> {
  const keys = segments.flatMap(({ key }) => (key === null ? [] : [key]));
  const lines = await subrequests.fetchAll(keys, async (key) => {
    const object = await env.STORE.get(key);
    const text = object === null ? "" : await object.text();
    return text.split("\n").filter((line) => wanted.has(idOf(line)));
  });
  const parsed = lines.flat().map((line) => JSON.parse(line) as SegmentLine);
  return new Map(
    parsed.flatMap(({ rollout_id, trajectory }) => (trajectory === null ? [] : [[rollout_id, trajectory]])),
  );
}

/** A line begins with its rollout's id, as it was written. */
function idOf(line: string): string {
  return /^\{"rollout_id":"([^"]*)"/.exec(line)?.[1] ?? "";
}
