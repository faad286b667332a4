/**
 * The address and the decrypted keys of a replica, for calls. Durable Objects store only a replica's id, never its key.
 * The sealed key is decrypted for a call and cached in the isolate's memory. A changed key or address applies after at
 * most five seconds.
 */

import { LIMITS } from "../contract/limits.ts";
import type { Scope } from "../contract/scope.ts";
import { databaseOf } from "../kernel/db/database.ts";
import { type EndpointAccess, EndpointUnusable } from "../kernel/endpoint/call.ts";
import { type Outgoing, outgoingFor } from "../kernel/endpoint/outgoing.ts";
import { placeOf } from "../kernel/kit/address.ts";
import { LruCache } from "../kernel/kit/caches.ts";
import { openSealed } from "../kernel/kit/sealed-values.ts";
import { SettingsCache } from "../kernel/kit/settings-cache.ts";
import type { Places } from "./aliases.ts";
import { getReplica } from "./queries.ts";

interface Opened {
  readonly base_url: string;
  /** Null: the server of `base_url`. */
  readonly control_url: string | null;
  readonly api_key: string | null;
  readonly control_key: string | null;
}

export interface ReplicaAccess extends Opened, Outgoing, Pick<EndpointAccess, "refuses" | "remember"> {}

/** The replica was removed, or its key was sealed under another secret: a retry on it cannot succeed. */
export class ReplicaGone extends EndpointUnusable {
  override readonly name: string = "ReplicaGone";
}

const opened = new SettingsCache<Opened>();
/** What replicas refuse in a request, by their id, as this isolate found out. */
const refused = new LruCache<readonly string[]>(10_000);

export async function openReplica(
  env: Env,
  scope: Scope,
  fleetId: string,
  replicaId: string,
  now: number,
): Promise<ReplicaAccess> {
  const { orgId, projectId } = scope;
  const asked = { env, orgId, name: `${orgId}/${projectId}/${replicaId}`, now };
  const access = await opened.get(asked, async () => {
    const row = await getReplica(databaseOf(env), scope, replicaId);
    if (row === null || row.fleet_id !== fleetId) throw new ReplicaGone(`replica ${replicaId} does not exist`);
    const { id, base_url, control_url, sealed_key, sealed_control_key } = row;
    const open = async (kind: "replica" | "replica_control", sealed: string | null) => {
      if (sealed === null) return null;
      try {
        return await openSealed(env, { kind, scope, id, sealed });
      } catch (cause) {
        throw new ReplicaGone(`the key of replica ${id} cannot be decrypted`, { cause });
      }
    };
    const api_key = await open("replica", sealed_key);
    return { base_url, control_url, api_key, control_key: await open("replica_control", sealed_control_key) };
  });
  const refuses = refused.get(replicaId) ?? [];
  const remember = async (name: string) => {
    const known = refused.get(replicaId) ?? [];
    refused.set(replicaId, [...new Set([...known, name])].slice(0, LIMITS.refusedNames));
  };
  return { ...(await outgoingFor(env, scope)), ...access, refuses, remember };
}

/** If there is no `control_url`, the control side is the root of the server of `base_url`. */
export function placesOf({ base_url, control_url }: Pick<Opened, "base_url" | "control_url">): Places {
  const calls = placeOf(base_url);
  return { calls, control: placeOf(control_url ?? base_url).replace(/\/(v1)?$/, "") };
}
