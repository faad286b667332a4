/** Routes for the replicas of a fleet: add, list, read, change, probe, remove. Keys are accepted and never returned. */

import { Deleted } from "../contract/endpoint.ts";
import { EXAMPLE } from "../contract/primitives.ts";
import {
  ask,
  CREATED_HEADERS,
  creationReply,
  IDEMPOTENCY_HEADER,
  readBody,
  readCreation,
} from "../kernel/http/answer.ts";
import { unwrap } from "../kernel/http/errors.ts";
import { idempotencyKeyOf } from "../kernel/http/input.ts";
import { type ApiContext, type Operation, pathParam, serviceOf } from "../kernel/http/operation.ts";
import { pageOf } from "../kernel/http/page.ts";
import { ReplicaList, ReplicaPatch, ReplicaRequest, ReplicaView } from "./wire.ts";

const FOLDER = "/v1/fleets/{id}/replicas";
const ONE = `${FOLDER}/{replica}`;

const service = serviceOf<typeof import("./replicas.ts")>("replicas");

export const replicaOperations: readonly Operation[] = [
  {
    id: "addReplica",
    route: `POST ${FOLDER}`,
    permission: "endpoints:write",
    summary: "Add a replica to a fleet, and probe it",
    description:
      "The probe takes at most 10 seconds. If it fails, the replica is still created, with the error in `capabilities.error`. Addresses where the platform itself serves models are refused.",
    headers: IDEMPOTENCY_HEADER,
    body: { schema: ReplicaRequest },
    reply: { status: 201, description: "The replica, without its keys", schema: ReplicaView, headers: CREATED_HEADERS },
    errors: ["url_not_allowed", "conflict", "idempotency_conflict"],
    handle: addOne,
  },
  {
    id: "listReplicas",
    route: `GET ${FOLDER}`,
    permission: "endpoints:read",
    summary: "List the replicas of a fleet, in the order of creation",
    reply: { description: "All replicas", schema: ReplicaList },
    handle: async (context) => {
      const replicas = await ask(context, service(context).listReplicas);
      return context.json(pageOf(replicas, replicas.length));
    },
  },
  {
    id: "getReplica",
    route: `GET ${ONE}`,
    permission: "endpoints:read",
    summary: "Read a replica, by id or name",
    reply: { description: "The replica, without its keys", schema: ReplicaView },
    handle: async (context) => reply(context, await service(context).readReplica(...named(context))),
  },
  {
    id: "updateReplica",
    route: `PATCH ${ONE}`,
    permission: "endpoints:write",
    summary: "Change a replica, by id or name: only the given fields",
    description:
      "`draining: true` lets it finish its rollouts. An address on another server needs the key again, or null for none: a stored key is only sent to the server it was given for. A new key or address is probed.",
    body: { schema: ReplicaPatch, example: { draining: true } },
    reply: { description: "The changed replica", schema: ReplicaView, example: { state: "draining" } },
    errors: ["url_not_allowed", "conflict"],
    handle: changeOne,
  },
  {
    id: "removeReplica",
    route: `DELETE ${ONE}`,
    permission: "endpoints:write",
    summary: "Remove a replica from its fleet, by id or name",
    description: "Its keys are erased. Calls in flight continue. Drain it first to wait for their answers.",
    reply: { description: "Deleted", schema: Deleted, example: { object: "replica", id: EXAMPLE.replica } },
    handle: removeOne,
  },
  {
    id: "probeReplica",
    route: `POST ${ONE}/probe`,
    permission: "endpoints:write",
    summary: "Probe a replica again",
    headers: { "Idempotency-Key": "accepted but not needed: a probe changes nothing at the replica" },
    reply: {
      description: "The replica with the result; a failure is in capabilities.error",
      schema: ReplicaView,
    },
    errors: ["conflict"],
    handle: async (context) => {
      idempotencyKeyOf(context.req.raw);
      const { probeReplica } = service(context);
      return reply(context, await probeReplica(...named(context), context.var.now()));
    },
  },
];

function named(context: ApiContext) {
  const of = { fleet: pathParam(context, "id"), replica: pathParam(context, "replica") };
  return [context.env, context.var.scope, of] as const;
}

function reply(context: ApiContext, found: Parameters<typeof unwrap<ReplicaView>>[0]): Response {
  return context.json(unwrap(found));
}

async function addOne(context: ApiContext): Promise<Response> {
  const { request, options } = await readCreation(context, ReplicaRequest);
  const fleet = pathParam(context, "id");
  const made = await service(context).addReplica(context.env, context.var.scope, fleet, request, options);
  const { value, replayed } = unwrap(made);
  return creationReply(
    context,
    { folder: FOLDER.replace("{id}", encodeURIComponent(fleet)), status: 201 },
    value,
    replayed,
  );
}

async function changeOne(context: ApiContext): Promise<Response> {
  const patch = await readBody(context, ReplicaPatch);
  return reply(context, await service(context).changeReplica(...named(context), patch, context.var.now()));
}

async function removeOne(context: ApiContext): Promise<Response> {
  const { id } = unwrap(await service(context).removeReplica(...named(context)));
  return context.json({ object: "replica", id, deleted: true });
}
