/** Endpoints, and probing one again. A key can be written and is never shown. */
import { EndpointList, EndpointPatch, EndpointRequest, EndpointView } from "../../contract/endpoint.ts";
import { EXAMPLE } from "../../contract/primitives.ts";
import { databaseOf } from "../db/database.ts";
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
    find: ({ env, var: { scope } }, nameOrId) => findEndpoint(databaseOf(env), scope, nameOrId),
    show: (_, endpoints) => endpoints.map(endpointViewOf),
    create: {
      summary: "Create an endpoint for runs to use, and probe it",
      description:
        "The probe takes at most 10 seconds. If it fails, the endpoint is still created, with the error in `capabilities.error`.",
      body: { schema: EndpointRequest },
      reply: { description: "The endpoint, without its key" },
      errors: ["url_not_allowed"],
      run: ({ env, var: { scope, services } }, request, options) =>
        services.createEndpoint(env, scope, request, options),
    },
    list: {
      summary: "List endpoints, except those defined inside a run",
      reply: { description: "One page of endpoints", schema: EndpointList },
      run: ({ env, var: { scope } }, page) => listEndpoints(databaseOf(env), scope, page),
    },
    get: { summary: "Read an endpoint, by id or name", reply: { description: "The endpoint, without its key" } },
    update: {
      summary: "Change an endpoint, by id or name: only the given fields",
      description:
        "Running runs use a new key or address within 5 seconds. An address on another server needs the key again, or null for none: a stored key is only sent to the server it was given for. A new key or address is probed.",
      body: { schema: EndpointPatch, example: { api_key: "sk-gh78ij90kl12" } },
      reply: { description: "The changed endpoint", example: { api_key_last4: "kl12" } },
      errors: ["url_not_allowed", "conflict"],
      run: ({ env, var: { scope, services, now } }, endpoint, patch) =>
        services.changeEndpoint(env, scope, endpoint, patch, now()),
    },
    delete: {
      summary: "Delete an endpoint that no run uses any more, by id or name",
      description: "Its key is erased and its name can be reused. Runs that used it still show it.",
      errors: ["conflict"],
      run: ({ env, var: { scope, services, now } }, endpoint) => services.deleteEndpoint(env, scope, endpoint, now()),
    },
  }),
  {
    id: "probeEndpoint",
    route: `POST ${PATH}/{id}/probe`,
    permission: "endpoints:write",
    summary: "Probe an endpoint again",
    headers: { "Idempotency-Key": "accepted but not needed: a probe changes nothing at the endpoint" },
    reply: {
      description: "The endpoint with the result; a failure is in capabilities.error",
      schema: EndpointView,
    },
    errors: ["conflict"],
    handle: (context) => answer(context, context.var.services.probeEndpoint, context.var.now()),
  },
];
