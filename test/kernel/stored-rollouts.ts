/**
 * What a run has stored about its rollouts, read from where it is: rows of D1, of the run's own SQLite, objects of R2.
 */
import { env } from "cloudflare:workers";
import type { Trajectory } from "../../src/contract/trajectory.ts";
import { runFolder } from "../../src/kernel/kit/names.ts";
import type { RolloutEntry } from "../../src/kernel/messages/run-records.ts";
import type { TestApi } from "./platform.ts";

export interface StoredRun {
  readonly run: {
    readonly id: string;
    readonly environment_id: string;
    readonly environment_version: string;
    readonly model: string;
  };
  /** The ended rollouts, in the order of their ends, each with its trajectory and the place of that. */
  readonly rollouts: readonly StoredRollout[];
}

export interface StoredRollout {
  readonly row: RolloutEntry;
  readonly trajectory: Trajectory | null;
  /** `row`: with its row in SQLite; `object`: in its own object in R2; `segment`: with others in one object. */
  readonly place: "row" | "object" | "segment" | null;
}

type Left = Pick<StoredRollout, "trajectory" | "place">;

/** Read in this order, because a trajectory moves from a row or an object into a segment, and never back. */
export async function storedRun(api: TestApi, id: string): Promise<StoredRun> {
  const run = await env.DB.prepare(
    "select id, environment_id, environment_version, spec ->> '$.model' as model from runs where id = ?",
  )
    .bind(id)
    .first<StoredRun["run"]>();
  if (run === null) throw new Error("no such run");
  const { rows, texts } = await api.inRun(id, (_, { storage: { sql } }) => ({
    rows: sql.exec<RolloutEntry>("select * from rollouts where finish_seq is not null order by finish_seq").toArray(),
    texts: sql.exec<{ text: string }>("select text from trajectories").toArray(),
  }));
  const left = new Map<string, Left>();
  for (const { text } of texts) {
    const trajectory: Trajectory = JSON.parse(text);
    left.set(trajectory.rollout_id, { trajectory, place: "row" });
  }
  const folder = runFolder(api.scope, id);
  for (const text of await objectsOf(`${folder}trajectories/`)) {
    const trajectory: Trajectory = JSON.parse(text);
    left.set(trajectory.rollout_id, { trajectory, place: "object" });
  }
  for (const text of await objectsOf(`${folder}segments/`)) {
    for (const line of text.split("\n")) {
      const { rollout_id, trajectory }: { rollout_id: string; trajectory: Trajectory | null } = JSON.parse(line);
      left.set(rollout_id, { trajectory, place: "segment" });
    }
  }
  const nothing: Left = { trajectory: null, place: null };
  const rollouts = rows.map((row) => ({ row, ...(left.get(row.id) ?? nothing) }));
  return { run, rollouts };
}

async function objectsOf(prefix: string): Promise<string[]> {
  const { objects } = await env.STORE.list({ prefix });
  const found = await Promise.all(objects.map(({ key }) => env.STORE.get(key)));
  return Promise.all(found.map(async (object) => (object === null ? "{}" : await object.text())));
}
