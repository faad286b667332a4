/** The environments of this deployment, as the API shows them. */

import { LIMITS } from "../../contract/limits.ts";
import type { EnvironmentView } from "../../contract/run.ts";
import type { Scope } from "../../contract/scope.ts";
import type { VersionedEnvironment } from "../../core/protocol/environment-code.ts";
import { publishedEnvironments } from "../kit/slice-hooks.ts";
import type { Result } from "../messages/refusal.ts";
import { builtOrError } from "./choose-environment.ts";
import { behindRoute } from "./code-behind-route.ts";
import { environmentNamed, heldEnvironments, isBuilt, pinOf } from "./environments.ts";

export interface EnvironmentsWanted {
  /** In the id or the description. */
  readonly search?: string | undefined;
  readonly owner?: string | undefined;
  /** Id of the last environment of the previous page. */
  readonly after?: string | undefined;
  readonly limit: number;
}

/**
 * Those of the deployment, then at most `LIMITS.publishedPerPage` published ones by name. `rows`: one more than `limit`, if
 * there are more.
 */
export async function listEnvironments(
  env: Env,
  scope: Scope,
  { search, owner, after, limit }: EnvironmentsWanted,
): Promise<{ readonly rows: readonly EnvironmentView[]; readonly limit: number }> {
  const own =
    owner === undefined ? heldEnvironments().filter(({ id }) => id.includes((search ?? "").toLowerCase())) : [];
  const at = own.findIndex(({ id }) => id === after);
  const rest = after === undefined || at !== -1 ? own.slice(at + 1, at + 2 + limit) : [];
  const here = await Promise.all(rest.map((registered) => viewOf(env, registered)));
  if (here.length > limit) return { rows: here, limit };
  const most = Math.min(limit, here.length + LIMITS.publishedPerPage);
  const from = { after: at === -1 ? (after ?? null) : null, limit: most + 1 - here.length };
  const wanted = { text: search ?? null, owner: owner ?? null, ...from };
  const published = await publishedEnvironments().search(env, scope, wanted);
  const found = await Promise.all(published.map((registered) => viewOf(env, registered)));
  return { rows: [...here, ...found], limit: most };
}

export async function readEnvironment(env: Env, scope: Scope, named: string): Promise<Result<EnvironmentView>> {
  const found = await environmentNamed(env, scope, named, "id");
  return found.ok ? { ok: true, value: await viewOf(env, found.value) } : found;
}

async function viewOf(env: Env, registered: VersionedEnvironment): Promise<EnvironmentView> {
  const { published } = registered;
  if (published !== null) {
    return { object: "environment", ...pinOf(registered), ...published.description, published: published.version };
  }
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
    ...(description?.maxReward != null && { max_reward: description.maxReward }),
    published: null,
  };
}
