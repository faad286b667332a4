/** Finds the turns of one rollout and reads them: while it runs, after its end, and while they are being moved. */
import type { Scope } from "../../contract/scope.ts";
import type { RunRecord } from "../db/runs.ts";
import { rolloutShard, trajectoryKey } from "../kit/names.ts";
import { Subrequests } from "../kit/subrequests.ts";
import type { Result } from "../messages/refusal.ts";
import type { RunRpc } from "../messages/rpc.ts";
import type { RolloutRecord } from "../messages/run-records.ts";
import { openReader, readerOf, TrajectoryMoved, type TurnReader } from "../trajectory/read-turns.ts";
import { readTrajectory } from "../trajectory/store.ts";
import { type Address, type Counted, findRollout } from "./read-rollouts.ts";

/** A trajectory moves once, from its row or its own R2 object into a segment, and never back. */
const LOOKS = 3;

/** A rollout that was found. */
export interface Opened {
  readonly run: RunRecord["run"];
  readonly counted: Counted;
  /** Null if no turns are stored. */
  readonly reader: TurnReader | null;
  readonly subrequests: Subrequests;
}

/** The result of `use`. It is called again if the trajectory was moved while it was read. */
export async function withTurns<T>(
  env: Env,
  scope: Scope,
  id: string,
  use: (opened: Opened) => Promise<Result<T>>,
): Promise<Result<T>> {
  const subrequests = new Subrequests();
  for (let look = 1; ; look += 1) {
    const found = await findRollout(env, scope, id);
    if (!found.ok) return found;
    const { run, record, object } = found.value;
    try {
      const reader = await readerFor(env, { scope, run_id: run.id }, record, object, subrequests);
      return await use({ run, counted: record, reader, subrequests });
    } catch (thrown) {
      if (!(thrown instanceof TrajectoryMoved) || look === LOOKS) throw thrown;
    }
  }
}

async function readerFor(
  env: Env,
  address: Address,
  record: RolloutRecord,
  run: Pick<RunRpc, "segmentOf">,
  subrequests: Subrequests,
): Promise<TurnReader | null> {
  const { id, digest, finish_seq, host: shard } = record.entry;
  const { text } = record;
  if (digest === null) return finish_seq !== null || shard === null ? null : await liveReader(env, address, shard, id);
  if (text !== null) {
    const trajectory = await readTrajectory(env, address, { digest, text }, subrequests);
    return trajectory === null ? null : readerOf(trajectory);
  }
  const segment = finish_seq === null ? null : await run.segmentOf(finish_seq);
  const folded = segment?.key ?? null;
  const key = folded ?? trajectoryKey(address.scope, address.run_id, digest);
  return await openReader(env, { key, rollout_id: id, in_segment: folded !== null }, subrequests);
}

/** Reads a running rollout: its object returns only what is requested. Null if it has not begun. */
async function liveReader(env: Env, address: Address, shard: number, id: string): Promise<TurnReader | null> {
  const { scope, run_id } = address;
  const object = () => rolloutShard(env, scope, run_id, shard);
  const none = { after: null, before: null, limit: 0, bytes: 0 };
  const begun = await object().turns(id, none);
  if (begun === null) return null;
  return {
    total: begun.total,
    page: async (ask) => stillThere(id, await object().turns(id, ask)),
    initialState: async () => stillThere(id, await object().rest(id)).initial_state,
    rest: async () => stillThere(id, await object().rest(id)),
  };
}

/** The rollout may have ended meanwhile, and its object may be freed. */
function stillThere<T>(id: string, found: T | null): T {
  if (found === null) throw new TrajectoryMoved(id);
  return found;
}
