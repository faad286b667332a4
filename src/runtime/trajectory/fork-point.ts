/** What the rollouts of a forked run begin with: one R2 object, written before the run, read when they are started. */

import type { Scope } from "../../contract/scope.ts";
import type { ForkPoint } from "../../core/rollout/fork.ts";
import { RowsMissing } from "../dataset/rows.ts";
import { forkKey } from "../kit/names.ts";
import { sha256Hex } from "../kit/secrets.ts";
import type { Subrequests } from "../kit/subrequests.ts";

/** The key it was stored under. */
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

/** Throws `RowsMissing` when it is gone. */
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
