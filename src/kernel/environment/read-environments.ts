/** The environments of this deployment, as the API shows them. */

import type { EnvironmentView } from "../../contract/run.ts";
import type { VersionedEnvironment } from "../../core/protocol/environment-code.ts";
import { type Result, refuse } from "../messages/refusal.ts";
import { builtOrError } from "./choose-environment.ts";
import { behindRoute } from "./code-behind-route.ts";
import { findEnvironment, heldEnvironments, isBuilt, pinOf } from "./environments.ts";

export function listEnvironments(env: Env): Promise<EnvironmentView[]> {
  return Promise.all(heldEnvironments().map((registered) => viewOf(env, registered)));
}

export async function readEnvironment(env: Env, named: string): Promise<Result<EnvironmentView>> {
  const registered = findEnvironment(named);
  if (registered === null) return refuse("not_found", `no environment ${named}`, "id");
  return { ok: true, value: await viewOf(env, registered) };
}

async function viewOf(env: Env, registered: VersionedEnvironment): Promise<EnvironmentView> {
  // Built with its defaults only to show its row schema. A failure must not hide the other environments.
  const build = () => builtOrError(null, registered, {});
  const environment = isBuilt(null, registered, {}) ? await build() : await behindRoute(env, registered, {}, build);
  const description = environment instanceof Error ? null : environment.description;
  const source = description && (description.evalDataset ?? description.dataset);
  return {
    object: "environment",
    ...pinOf(registered),
    args: registered.code.args,
    dataset: source?.kind ?? null,
    row: source?.row ?? null,
    needs: [...registered.code.needs],
    judges: [...(description?.judges ?? [])],
  };
}
