/** Accepts a requested run: resolves the request, stores what the run needs, and creates its object. */

import type { RunRequest } from "../../contract/run.ts";
import type { Scope } from "../../contract/scope.ts";
import type { CreateOptions } from "../kit/idempotency.ts";
import { type Begun, beginRun, replayedRun } from "./begin-run.ts";
import { type ByRun, resolveRun, wantedBy } from "./resolve/resolve-run.ts";

export async function acceptRun(
  env: Env,
  scope: Scope,
  asked: RunRequest,
  options: CreateOptions & ByRun,
): Promise<Begun> {
  const repeated = await replayedRun(env, scope, options);
  if (repeated !== null) return repeated;
  const resolved = await resolveRun(env, scope, wantedBy(asked, options), options.now);
  if (!resolved.ok) return resolved;
  const { name = null, metadata } = asked;
  const naming = { name, metadata, byRun: options.byRun === true };
  return await beginRun(env, scope, resolved.value, naming, options);
}
