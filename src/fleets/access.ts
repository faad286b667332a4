/**
 * The replicas of fleets as calls use them. Objects keep a replica's id, never its key: the sealed key is opened at the call
 * and kept in the isolate's memory for five seconds. A changed key or address counts from then on at the latest.
 */

import type { Scope } from "../contract/scope.ts";
import type { Send } from "../kernel/clients/outgoing.ts";
import type { ReplyRoom } from "../kernel/clients/reply-room.ts";
import { EndpointUnusable } from "../kernel/endpoint/call.ts";
import { replyRoom } from "../kernel/endpoint/reply-room.ts";
import { allowedHosts, placeOf, wayOut } from "../kernel/kit/address.ts";
import { OUTAGE_MS, TtlCache } from "../kernel/kit/caches.ts";
import { openSealed } from "../kernel/kit/sealed-values.ts";
import { getReplica } from "./queries.ts";
import type { Places } from "./twins.ts";

interface Opened {
  readonly base_url: string;
  /** Null: the server of `base_url`. */
  readonly control_url: string | null;
  readonly api_key: string | null;
  readonly control_key: string | null;
}

export interface ReplicaAccess extends Opened {
  readonly send: Send;
  readonly openRoom: () => ReplyRoom;
}

/** It was taken out of its fleet, or its key was sealed under another secret: no other try would find it. */
export class ReplicaGone extends EndpointUnusable {
  override readonly name: string = "ReplicaGone";
}

const opened = new TtlCache<Opened>(5000, 4000, OUTAGE_MS);

export async function openReplica(
  env: Env,
  scope: Scope,
  fleetId: string,
  replicaId: string,
  now: number,
): Promise<ReplicaAccess> {
  const { orgId, projectId } = scope;
  const access = await opened.get(`${orgId}/${projectId}/${replicaId}`, now, async () => {
    const row = await getReplica(env.DB, scope, replicaId);
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
  const openRoom = () => replyRoom(scope.orgId);
  return { ...access, send: wayOut(env, await allowedHosts(env, scope)), openRoom };
}

/** Without an address of its own the control side is the root of the server that calls go to. */
export function placesOf({ base_url, control_url }: Pick<Opened, "base_url" | "control_url">): Places {
  const calls = placeOf(base_url);
  return { calls, control: placeOf(control_url ?? base_url).replace(/\/(v1)?$/, "") };
}
