/** Fleets: create, list, read, change, delete. Their replicas: replica-routes.ts. */

import {
  answer,
  ask,
  CREATED_HEADERS,
  creationReply,
  IDEMPOTENCY_HEADER,
  readBody,
  readCreation,
  readQuery,
} from "../api/answer.ts";
import { unwrap } from "../api/errors.ts";
import { type ApiContext, type Operation, serviceOf } from "../api/operation.ts";
import { PageQuery, pageOf, positionOf } from "../api/page.ts";
import { Deleted } from "../contract/endpoint.ts";
import { EXAMPLE } from "../contract/primitives.ts";
import { findFleet } from "./queries.ts";
import { FleetList, FleetPatch, FleetRequest, FleetView } from "./wire.ts";

const FOLDER = "/v1/fleets";
const ONE = `${FOLDER}/{id}`;

const service = serviceOf<typeof import("./service.ts")>("fleets");

export const fleetOperations: readonly Operation[] = [
  {
    id: "createFleet",
    route: `POST ${FOLDER}`,
    permission: "endpoints:write",
    summary: "Name a fleet for runs to use, with its first replicas",
    description:
      "Each replica is probed for at most 10 seconds, six at a time and all within 30 seconds; a probe refuses nothing: what went wrong stands in `capabilities.error`.",
    headers: IDEMPOTENCY_HEADER,
    body: { schema: FleetRequest },
    reply: { status: 201, description: "The fleet, without keys", schema: FleetView, headers: CREATED_HEADERS },
    errors: ["url_not_allowed", "conflict", "idempotency_conflict"],
    handle: createOne,
  },
  {
    id: "listFleets",
    route: `GET ${FOLDER}`,
    permission: "endpoints:read",
    summary: "List fleets, each with its replicas and how they are",
    query: PageQuery,
    reply: { description: "One page of fleets", schema: FleetList },
    handle: listAll,
  },
  {
    id: "getFleet",
    route: `GET ${ONE}`,
    permission: "endpoints:read",
    summary: "Read a fleet, by id or name: what it is to serve, and how each replica is",
    reply: { description: "The fleet, without keys", schema: FleetView },
    handle: (context) => answer(context, service(context).readFleet),
  },
  {
    id: "updateFleet",
    route: `PATCH ${ONE}`,
    permission: "endpoints:write",
    summary: "Change a fleet, by id or name: only what is named",
    description: "`update` takes the place of all of it. It holds from the next update of a replica on.",
    body: { schema: FleetPatch, example: { location_hint: "weur" } },
    reply: { description: "The fleet as it is now", schema: FleetView, example: { location_hint: "weur" } },
    errors: ["conflict"],
    handle: changeOne,
  },
  {
    id: "deleteFleet",
    route: `DELETE ${ONE}`,
    permission: "endpoints:write",
    summary: "Delete a fleet that no run uses any more, by id or name",
    description: "Its replicas go with it, their keys for good. Its name is free. Runs that used it still show it.",
    reply: { description: "It is gone", schema: Deleted, example: { object: "fleet", id: EXAMPLE.fleet } },
    errors: ["conflict"],
    handle: deleteOne,
  },
];

async function createOne(context: ApiContext): Promise<Response> {
  const { request, options } = await readCreation(context, FleetRequest);
  const made = await service(context).createFleet(context.env, context.var.scope, request, options);
  const { value, replayed } = unwrap(made);
  return creationReply(context, { folder: FOLDER, status: 201 }, value, replayed);
}

async function listAll(context: ApiContext): Promise<Response> {
  const { env } = context;
  const { scope } = context.var;
  const { after, limit, order } = readQuery(context, PageQuery);
  const position = await positionOf(after, "a fleet", (id) => findFleet(env.DB, scope, id));
  const fleets = await service(context).listFleets(env, scope, { after: position, limit: limit + 1, order });
  return context.json(pageOf(fleets, limit));
}

async function changeOne(context: ApiContext): Promise<Response> {
  const patch = await readBody(context, FleetPatch);
  return answer(context, service(context).changeFleet, patch, context.var.now());
}

async function deleteOne(context: ApiContext): Promise<Response> {
  const { id } = await ask(context, service(context).deleteFleet, context.var.now());
  return context.json({ object: "fleet", id, deleted: true });
}
