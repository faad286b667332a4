/**
 * Suspects among rollouts (suspects.ts), and what runs of an environment outside of its hooks, done once and thrown away: it
 * is built, the task is made, the row finds its environment, the tools are listed. Where deaths go on, that is done for a
 * suspect alone before it goes on, since one of these may be what ends the process.
 */
import { offeredTools } from "../../core/rollout/harness.ts";
import { newRollout, type Rollout } from "../../core/rollout/rollout.ts";
import { buildTask } from "../../core/rollout/task.ts";
import { pinnedEnvironment } from "../environment/environments.ts";
import { DEATHS_TO_THE_END, GIVEN_UP, lastEnd, Suspect } from "../environment/suspects.ts";
import { idsOf } from "../kit/log.ts";
import { runObject } from "../kit/names.ts";
import type { RolloutSpec } from "../messages/wire.ts";
import { givenUp } from "./driver.ts";

export interface Circumstances {
  /** This process did not come to what is next. */
  readonly resumed: boolean;
  /** The alarm of its object was begun before, and its process ended. */
  readonly again: boolean;
}

/** Null where what comes next did not end the process before. */
export async function rolloutSuspect(
  env: Env,
  spec: RolloutSpec,
  { resumed, again }: Circumstances,
): Promise<Suspect | null> {
  if (!resumed) return null;
  const { scope, run_id, group, slot, attempt } = spec;
  const { deaths } = await lastEnd(env);
  if (deaths === 0 && !again) return null;
  const run = () => runObject(env, scope, run_id);
  return new Suspect(env, run, `rollout/${group}/${slot}/${attempt}`, idsOf(spec), again);
}

/** The rollout as it ends when it must not be tried again; null when it goes on. `bare`: as it stands. */
export async function rehearse(
  env: Env,
  spec: RolloutSpec,
  around: Circumstances,
  stored: Rollout | null,
  bare: () => Rollout,
  now: () => number,
): Promise<Rollout | null> {
  const suspect = await rolloutSuspect(env, spec, around);
  if (suspect === null || (await lastEnd(env)).byItself < DEATHS_TO_THE_END) return null;
  const made = await suspect.run(() => suspect.computing(() => makeAll(spec, stored)));
  return made === GIVEN_UP ? givenUp(bare(), "code of its environment ran", now()) : null;
}

/** What it meets it gives: the same is met again where it matters, and dealt with there. */
async function makeAll(spec: RolloutSpec, stored: Rollout | null): Promise<unknown> {
  try {
    const environment = await pinnedEnvironment(spec);
    if (environment === null) return null;
    const { rollout_id: id, task_key, row, example_id } = spec;
    const task = { id, task_key, ...buildTask(environment, row, example_id) };
    return offeredTools(environment, stored ?? newRollout(task, 0));
  } catch (thrown) {
    return thrown;
  }
}
