/**
 * Endpoints as rollouts use them. Objects keep an endpoint's id, never its key: the sealed key is opened at the call
 * and kept in the isolate's memory for five minutes.
 */
import type { Scope } from "../core/scope.ts";
import { getEndpoint } from "../db/endpoints.ts";
import { unseal } from "./secrets.ts";

export interface EndpointAccess {
  readonly base_url: string;
  readonly api_key: string | null;
}

const KEPT_MS = 5 * 60_000;
const ENDPOINTS_KEPT = 256;
const opened = new Map<string, { until: number; access: Promise<EndpointAccess> }>();

export async function openEndpoint(
  env: Env,
  scope: Scope,
  endpointId: string,
  now: number,
): Promise<EndpointAccess> {
  const name = `${scope.orgId}/${endpointId}`;
  const known = opened.get(name);
  if (known !== undefined && known.until > now) return await known.access;
  const oldest = opened.keys().next();
  if (opened.size >= ENDPOINTS_KEPT && !oldest.done) opened.delete(oldest.value);
  const access = readEndpoint(env, scope, endpointId);
  opened.set(name, { until: now + KEPT_MS, access });
  // A failed read must not be remembered: the next call tries again.
  access.catch(() => opened.delete(name));
  return await access;
}

async function readEndpoint(env: Env, scope: Scope, endpointId: string): Promise<EndpointAccess> {
  const row = await getEndpoint(env.DB, scope, endpointId);
  if (row === null) throw new Error(`endpoint ${endpointId} does not exist`);
  const api_key =
    row.sealed_key === null
      ? null
      : await unseal(env.ROLLCALL_SECRET, row.sealed_key, `${scope.orgId}/${endpointId}`);
  return { base_url: row.base_url, api_key };
}
