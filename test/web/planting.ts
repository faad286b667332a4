/** Boots a platform whose Worker has routes for planted data, and plants data through them. */
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { longTrajectory } from "./long-rollout.ts";

export const ROOT = join(import.meta.dirname, "../..");

export const PLANTING = {
  entry: join(ROOT, "test/web/planting-fixture.ts"),
  folder: join(ROOT, "dist", "planting"),
};

/** Extends the only rollout of an ended run to this many turns; returns its id. */
export async function plantLongRollout(url: string, run: string, turns: number): Promise<string> {
  const api = `${url}/planted?run=${run}`;
  let short = await fetch(api);
  // The segment is written a moment after the run's end.
  for (; !short.ok; short = await fetch(api)) await pause(100);
  const { rollout_id, trajectory } = JSON.parse(await short.text());
  await put(api, JSON.stringify({ rollout_id, trajectory: longTrajectory(trajectory, turns) }));
  return rollout_id;
}

/** Replaces the rollouts of an ended run by this many invented ones. */
export async function plantRollouts(url: string, run: string, rollouts: number): Promise<void> {
  await put(`${url}/planted-rollouts?run=${run}&rollouts=${rollouts}`, "");
}

async function put(api: string, body: string): Promise<void> {
  const planted = await fetch(api, { method: "POST", body });
  if (!planted.ok) throw new Error(`nothing was planted: ${await planted.text()}`);
}
