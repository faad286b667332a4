/**
 * Makes an endpoint: checked, probed, its key sealed, stored. The probe comes before the write, so that an endpoint is
 * seen with what it supports from the start; whatever the probe meets, the endpoint is made, since its server may only be
 * off for now.
 */
import { probeEndpoint } from "../../clients/probe.ts";
import type { EndpointRequest, EndpointView } from "../../contract/endpoint.ts";
import type { Scope } from "../../contract/scope.ts";
import { mintId } from "../../core/ids.ts";

import { endpointViewOf, findEndpoint, insertEndpoint, type NamedEndpoint } from "../../db/endpoints.ts";
import { type Result, refuse } from "../contract/refusal.ts";
import { refuseAddress } from "../kit/address.ts";
import { type CreateOptions, replayed, toRemember } from "../kit/idempotency.ts";
import { minting } from "../kit/minting.ts";
import { sealedKey } from "../kit/sealed-key.ts";

const OPERATION = "createEndpoint";

export async function createEndpoint(
  env: Env,
  scope: Scope,
  request: EndpointRequest,
  options: CreateOptions,
): Promise<Result<{ value: EndpointView; replayed: boolean }>> {
  // Another request may be faster at any moment, with the same key or with the same name.
  const taken = async () => (await repeated(env, scope, options)) ?? nameTaken(request.name);
  const before = await repeated(env, scope, options);
  if (before !== null) return before;
  const refused = refuseAddress(env, request.base_url, "base_url");
  if (refused !== null) return refused;
  if ((await findEndpoint(env.DB, scope, request.name)) !== null) return await taken();
  const endpoint = await rowOf(env, scope, request, options.now);
  const key = toRemember(OPERATION, endpoint.id, options);
  if ((await insertEndpoint(env.DB, scope, endpoint, key)) === "taken") return await taken();
  return { ok: true, value: { value: endpointViewOf(endpoint), replayed: false } };
}

export function nameTaken(name: string): Result<never> {
  return refuse("conflict", `there is an endpoint called ${name} already`, "name");
}

async function repeated(env: Env, scope: Scope, options: CreateOptions) {
  const found = await replayed(env, scope, OPERATION, options, (id) => findEndpoint(env.DB, scope, id));
  if (found === null || !found.ok) return found;
  return { ok: true, value: { value: endpointViewOf(found.value), replayed: true } } as const;
}

async function rowOf(
  env: Env,
  scope: Scope,
  { probe, model, api_key, ...given }: EndpointRequest,
  now: number,
): Promise<NamedEndpoint> {
  const id = mintId("ep", minting(env, now));
  const access = { base_url: given.base_url, api_key: api_key ?? null };
  const asked = { ...access, model: model ?? null, usual: null, now };
  return {
    id,
    ...given,
    ...(await sealedKey(env, scope, id, access.api_key)),
    capabilities: probe ? await probeEndpoint(asked) : null,
    created_at: now,
    updated_at: now,
    deleted_at: null,
  };
}
