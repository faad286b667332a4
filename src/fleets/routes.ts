/** Routes for fleets. Routes for their replicas: replica-routes.ts. */

import { EXAMPLE } from "../contract/primitives.ts";
import { databaseOf } from "../kernel/db/database.ts";
import { serviceOf } from "../kernel/http/operation.ts";
import { resourceOperations } from "../kernel/http/resource.ts";
import { findFleet, listFleets } from "./queries.ts";
import { FleetList, FleetPatch, FleetRequest, FleetView } from "./wire.ts";

const service = serviceOf<typeof import("./service.ts")>("fleets");
const WITHOUT_KEYS = { description: "The fleet, without keys" };

export const fleetOperations = resourceOperations({
  noun: "fleet",
  path: "/v1/fleets",
  permissions: { read: "endpoints:read", write: "endpoints:write" },
  schema: FleetView,
  example: EXAMPLE.fleet,
  find: ({ env, var: { scope } }, nameOrId) => findFleet(databaseOf(env), scope, nameOrId),
  show: (context, fleets) => service(context).showFleets(context.env, context.var.scope, fleets),
  create: {
    summary: "Create a fleet for runs to use, with its first replicas",
    description:
      "Each replica is probed for at most 10 seconds, six at a time and all within 30 seconds. Replicas whose probe fails are still created, with the error in `capabilities.error`.",
    body: { schema: FleetRequest },
    reply: WITHOUT_KEYS,
    errors: ["url_not_allowed"],
    run: (context, request, options) => service(context).createFleet(context.env, context.var.scope, request, options),
  },
  list: {
    summary: "List fleets, with the state of their replicas",
    reply: { description: "One page of fleets", schema: FleetList },
    run: ({ env, var: { scope } }, page) => listFleets(databaseOf(env), scope, page),
  },
  get: {
    summary: "Read a fleet, by id or name: its target weights and the state of its replicas",
    reply: WITHOUT_KEYS,
  },
  update: {
    summary: "Change a fleet, by id or name: only the given fields",
    description: "`update` is replaced as a whole. It applies from the next update of a replica.",
    body: { schema: FleetPatch, example: { location_hint: "weur" } },
    reply: { description: "The changed fleet", example: { location_hint: "weur" } },
    errors: ["conflict"],
    run: (context, fleet, patch) =>
      service(context).changeFleet(context.env, context.var.scope, fleet, patch, context.var.now()),
  },
  delete: {
    summary: "Delete a fleet that no run uses any more, by id or name",
    description:
      "Its replicas and their keys are deleted too. Its name can be reused. Runs that used it still show it.",
    errors: ["conflict"],
    run: (context, fleet) => service(context).deleteFleet(context.env, context.var.scope, fleet, context.var.now()),
  },
});
