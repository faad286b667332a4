/** Endpoints: create, list, read, change, delete, probe. A key goes in and never comes out. */
import { Deleted, EndpointList, EndpointPatch, EndpointRequest, EndpointView } from "../contract/endpoint.ts";
import { EXAMPLE } from "../contract/primitives.ts";
import { endpointViewOf, findEndpoint, listEndpoints } from "../db/endpoints.ts";
import {
  answer,
  ask,
  CREATED_HEADERS,
  creationReply,
  IDEMPOTENCY_HEADER,
  readBody,
  readCreation,
  storedRow,
} from "./answer.ts";
import { unwrap } from "./errors.ts";
import type { ApiContext, Operation } from "./operation.ts";
import { listReply, PageQuery } from "./page.ts";

const FOLDER = "/v1/endpoints";
const ONE = `${FOLDER}/{id}`;

export const endpointOperations: readonly Operation[] = [
  {
    id: "createEndpoint",
    route: `POST ${FOLDER}`,
    permission: "endpoints:write",
    summary: "Name an endpoint for runs to use; it is asked once what it supports",
    description:
      "The probe takes at most 10 seconds and refuses nothing: what went wrong stands in `capabilities.error`.",
    headers: IDEMPOTENCY_HEADER,
    body: { schema: EndpointRequest },
    reply: {
      status: 201,
      description: "The endpoint, without its key",
      schema: EndpointView,
      headers: CREATED_HEADERS,
    },
    errors: ["url_not_allowed", "conflict", "idempotency_conflict"],
    handle: createOne,
  },
  {
    id: "listEndpoints",
    route: `GET ${FOLDER}`,
    permission: "endpoints:read",
    summary: "List endpoints; those given with a run are not among them",
    query: PageQuery,
    reply: { description: "One page of endpoints", schema: EndpointList },
    handle: (context) => listReply(context, "an endpoint", findEndpoint, listEndpoints, endpointViewOf),
  },
  {
    id: "getEndpoint",
    route: `GET ${ONE}`,
    permission: "endpoints:read",
    summary: "Read an endpoint, by id or name",
    reply: { description: "The endpoint, without its key", schema: EndpointView },
    handle: async (context) => context.json(endpointViewOf(await storedRow(context, "endpoint", findEndpoint))),
  },
  {
    id: "updateEndpoint",
    route: `PATCH ${ONE}`,
    permission: "endpoints:write",
    summary: "Change an endpoint, by id or name: only what is named",
    description:
      "Runs under way use another key or address after 5 seconds at the latest. An address on another server needs the key again, or null for none: a stored key goes nowhere but to the server it was given for. Another key or address is probed anew.",
    body: { schema: EndpointPatch, example: { api_key: "sk-gh78ij90kl12" } },
    reply: { description: "The endpoint as it is now", schema: EndpointView, example: { api_key_last4: "kl12" } },
    errors: ["url_not_allowed", "conflict"],
    handle: changeOne,
  },
  {
    id: "deleteEndpoint",
    route: `DELETE ${ONE}`,
    permission: "endpoints:write",
    summary: "Delete an endpoint that no run uses any more, by id or name",
    description: "Its key is gone for good and its name is free. Runs that used it still show it.",
    reply: { description: "It is gone", schema: Deleted, example: { object: "endpoint", id: EXAMPLE.endpoint } },
    errors: ["conflict"],
    handle: deleteOne,
  },
  {
    id: "probeEndpoint",
    route: `POST ${ONE}/probe`,
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

async function createOne(context: ApiContext): Promise<Response> {
  const { request, options } = await readCreation(context, EndpointRequest);
  const made = await context.var.services.createEndpoint(context.env, context.var.scope, request, options);
  const { value, replayed } = unwrap(made);
  return creationReply(context, { folder: FOLDER, status: 201 }, value, replayed);
}

async function changeOne(context: ApiContext): Promise<Response> {
  const patch = await readBody(context, EndpointPatch);
  return answer(context, context.var.services.changeEndpoint, patch, context.var.now());
}

async function deleteOne(context: ApiContext): Promise<Response> {
  const { id } = await ask(context, context.var.services.deleteEndpoint, context.var.now());
  return context.json({ object: "endpoint", id, deleted: true });
}
