/**
 * Endpoints as rollouts use them. Objects keep an endpoint's id, never its key: the sealed key is opened at the call
 * and kept in the isolate's memory for five minutes.
 */
import { RolloutError } from "../core/errors.ts";
import type { Scope } from "../core/scope.ts";
import { getEndpoint } from "../db/endpoints.ts";
import { unseal } from "./secrets.ts";

export interface EndpointAccess {
  readonly base_url: string;
  readonly api_key: string | null;
}

/** Nothing another try could mend: the endpoint is gone, or its key was sealed under another secret. */
export class EndpointUnusable extends RolloutError {
  override readonly name: string = "EndpointUnusable";
}

const KEPT_MS = 5 * 60_000;
const opened = new Map<string, { until: number; access: EndpointAccess }>();

export async function openEndpoint(
  env: Env,
  scope: Scope,
  endpointId: string,
  now: number,
): Promise<EndpointAccess> {
  const name = `${scope.orgId}/${endpointId}`;
  for (const [key, { until }] of opened) {
    if (until <= now) opened.delete(key);
  }
  const known = opened.get(name);
  if (known !== undefined) return known.access;
  // The value is kept, not its promise: what one invocation reads another must not have to wait for.
  const access = await readEndpoint(env, scope, endpointId);
  opened.set(name, { until: now + KEPT_MS, access });
  return access;
}

async function readEndpoint(env: Env, scope: Scope, endpointId: string): Promise<EndpointAccess> {
  const row = await getEndpoint(env.DB, scope, endpointId);
  if (row === null) throw new EndpointUnusable(`endpoint ${endpointId} does not exist`);
  if (row.sealed_key === null) return { base_url: row.base_url, api_key: null };
  try {
    const context = `${scope.orgId}/${endpointId}`;
    const api_key = await unseal(env.ROLLCALL_SECRET, row.sealed_key, context);
    return { base_url: row.base_url, api_key };
  } catch (cause) {
    throw new EndpointUnusable(`the key of endpoint ${endpointId} does not open`, { cause });
  }
}
