/** Endpoints, and asking one again what it supports. A key goes in and never comes out. */
import { EndpointList, EndpointPatch, EndpointRequest, EndpointView } from "../../contract/endpoint.ts";
import { EXAMPLE } from "../../contract/primitives.ts";
import { endpointViewOf, findEndpoint, listEndpoints } from "../db/endpoints.ts";
import { answer } from "./answer.ts";
import type { Operation } from "./operation.ts";
import { resourceOperations } from "./resource.ts";

const PATH = "/v1/endpoints";

export const endpointOperations: readonly Operation[] = [
  ...resourceOperations({
    noun: "endpoint",
    path: PATH,
    permissions: { read: "endpoints:read", write: "endpoints:write" },
    schema: EndpointView,
    example: EXAMPLE.endpoint,
    find: ({ env, var: { scope } }, nameOrId) => findEndpoint(env.DB, scope, nameOrId),
    show: (_, endpoints) => endpoints.map(endpointViewOf),
    create: {
      summary: "Name an endpoint for runs to use; it is asked once what it supports",
      description:
        "The probe takes at most 10 seconds and refuses nothing: what went wrong stands in `capabilities.error`.",
      body: { schema: EndpointRequest },
      reply: { description: "The endpoint, without its key" },
      errors: ["url_not_allowed"],
      run: ({ env, var: { scope, services } }, request, options) =>
        services.createEndpoint(env, scope, request, options),
    },
    list: {
      summary: "List endpoints; those given with a run are not among them",
      reply: { description: "One page of endpoints", schema: EndpointList },
      run: ({ env, var: { scope } }, page) => listEndpoints(env.DB, scope, page),
    },
    get: { summary: "Read an endpoint, by id or name", reply: { description: "The endpoint, without its key" } },
    update: {
      summary: "Change an endpoint, by id or name: only what is named",
      description:
        "Runs under way use another key or address after 5 seconds at the latest. An address on another server needs the key again, or null for none: a stored key goes nowhere but to the server it was given for. Another key or address is probed anew.",
      body: { schema: EndpointPatch, example: { api_key: "sk-gh78ij90kl12" } },
      reply: { description: "The endpoint as it is now", example: { api_key_last4: "kl12" } },
      errors: ["url_not_allowed", "conflict"],
      run: ({ env, var: { scope, services, now } }, endpoint, patch) =>
        services.changeEndpoint(env, scope, endpoint, patch, now()),
    },
    delete: {
      summary: "Delete an endpoint that no run uses any more, by id or name",
      description: "Its key is gone for good and its name is free. Runs that used it still show it.",
      errors: ["conflict"],
      run: ({ env, var: { scope, services, now } }, endpoint) => services.deleteEndpoint(env, scope, endpoint, now()),
    },
  }),
  {
    id: "probeEndpoint",
    route: `POST ${PATH}/{id}/probe`,
    permission: "endpoints:write",
    summary: "Ask an endpoint again what it supports",
    headers: { "Idempotency-Key": "accepted and not needed: asking changes nothing there" },
    reply: {
      description: "The endpoint with what was found; what went wrong is capabilities.error",
      schema: EndpointView,
    },
    errors: ["conflict"],
    handle: (context) => answer(context, context.var.services.probeEndpoint, context.var.now()),
  },
];
