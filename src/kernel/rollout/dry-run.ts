/**
 * Quarantine of rollouts (quarantine.ts), and a dry run of environment code outside of its hooks: it builds the
 * environment and the task, routes the row, lists the tools, and drops the results. If a process dies repeatedly, a
 * quarantined rollout does the dry run alone before it continues, since one of these steps may be what kills the
 * process.
 */
import { newRollout, type Rollout } from "../../core/rollout/rollout.ts";
import { pinnedEnvironment } from "../environment/environments.ts";
import { DEATHS_TO_THE_END, GIVEN_UP, lastEnd, Quarantine } from "../environment/quarantine.ts";
import { idsOf } from "../kit/log.ts";
import { runObject } from "../kit/names.ts";
import type { RolloutSpec } from "../messages/wire.ts";
import { givenUp } from "./driver.ts";

export interface Circumstances {
  /** This process did not begin the next step. */
  readonly resumed: boolean;
  /** The alarm of its object was started before, and its process died. */
  readonly again: boolean;
}

/** Null if the next step cannot have killed a process before. */
export async function quarantineOf(
  env: Env,
  spec: RolloutSpec,
  { resumed, again }: Circumstances,
): Promise<Quarantine | null> {
  if (!resumed) return null;
  const { scope, run_id, group, slot, attempt } = spec;
  const { deaths } = await lastEnd(env);
  if (deaths === 0 && !again) return null;
  const run = () => runObject(env, scope, run_id);
  return new Quarantine(env, run, `rollout/${group}/${slot}/${attempt}`, idsOf(spec), again);
}

/** The ended rollout if it must not be tried again; null if it continues. `bare`: its present state. */
export async function dryRun(
  env: Env,
  spec: RolloutSpec,
  around: Circumstances,
  stored: Rollout | null,
  bare: () => Rollout,
  now: () => number,
): Promise<Rollout | null> {
  const quarantine = await quarantineOf(env, spec, around);
  if (quarantine === null || (await lastEnd(env)).byItself < DEATHS_TO_THE_END) return null;
  const made = await quarantine.run(() => quarantine.computing(() => makeAll(env, spec, stored)));
  return made === GIVEN_UP ? givenUp(bare(), "code of its environment ran", now()) : null;
}

/** Errors are returned, not thrown: the same error occurs again in the real step and is handled there. */
async function makeAll(env: Env, spec: RolloutSpec, stored: Rollout | null): Promise<unknown> {
  try {
    const environment = await pinnedEnvironment(env, spec);
    if (environment === null) return null;
    const { rollout_id: id, task_key, row, example_id } = spec;
    const made = await environment.task({ kind: "parsed", index: example_id, row });
    if ("fault" in made) return made;
    return await environment.tools(stored ?? newRollout({ id, task_key, ...made.task }, 0));
  } catch (thrown) {
    return thrown;
  }
}
