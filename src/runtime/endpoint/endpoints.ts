/**
 * Endpoints as rollouts use them. Objects keep an endpoint's id, never its key: the sealed key is opened at the call
 * and kept in the isolate's memory for five minutes. A changed key or address counts from then on at the latest.
 */
import { RolloutError } from "../../contract/errors.ts";
import type { Scope } from "../../contract/scope.ts";
import { getEndpoint } from "../../db/endpoints.ts";
import type { EndpointRow } from "../../db/schema.ts";
import { sealContext, unseal } from "../kit/secrets.ts";
import { ShortMemory } from "../kit/short-memory.ts";

export interface EndpointAccess {
  readonly base_url: string;
  readonly api_key: string | null;
}

/** Nothing another try could mend: the endpoint is gone, or its key was sealed under another secret. */
export class EndpointUnusable extends RolloutError {
  override readonly name: string = "EndpointUnusable";
}

const opened = new ShortMemory<EndpointAccess>(5 * 60_000);

export function openEndpoint(env: Env, scope: Scope, endpointId: string, now: number): Promise<EndpointAccess> {
  return opened.get(nameOf(scope, endpointId), now, async () => {
    const row = await getEndpoint(env.DB, scope, endpointId);
    if (row === null) throw new EndpointUnusable(`endpoint ${endpointId} does not exist`);
    if (row.deleted_at !== null) throw new EndpointUnusable(`endpoint ${endpointId} was deleted`);
    return await accessOf(env, scope, row);
  });
}

/** This isolate opens the endpoint anew; others know it for as long as they keep it. */
export function forgetEndpoint(scope: Scope, endpointId: string): void {
  opened.forget(nameOf(scope, endpointId));
}

/** Opens the key. Throws EndpointUnusable where it was sealed under another secret. */
export async function accessOf(
  env: Env,
  scope: Scope,
  { id, base_url, sealed_key }: Pick<EndpointRow, "id" | "base_url" | "sealed_key">,
): Promise<EndpointAccess> {
  if (sealed_key === null) return { base_url, api_key: null };
  try {
    const api_key = await unseal(env.ROLLCALL_SECRET, sealed_key, sealContext(scope, id));
    return { base_url, api_key };
  } catch (cause) {
    throw new EndpointUnusable(`the key of endpoint ${id} does not open`, { cause });
  }
}

function nameOf(scope: Scope, endpointId: string): string {
  return `${scope.orgId}/${scope.projectId}/${endpointId}`;
}
