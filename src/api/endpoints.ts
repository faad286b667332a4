/** Endpoints: create, list, read, change, delete, probe. A key goes in and never comes out. */
import { Deleted, EndpointList, EndpointPatch, EndpointRequest, EndpointView } from "../contract/endpoint.ts";

import { endpointViewOf, findEndpoint, listEndpoints, type NamedEndpoint } from "../db/endpoints.ts";
import { CREATED_HEADERS, creationReply, IDEMPOTENCY_HEADER, readCreation } from "./creation.ts";
import { Refusal, unwrap } from "./errors.ts";
import { idempotencyKeyOf, parseAs, queryOf, readJson } from "./input.ts";
import { ENDPOINT, ENDPOINT_REQUEST } from "./openapi/endpoint-examples.ts";
import { type ApiContext, type Operation, pathParam } from "./operation.ts";
import { PageQuery, pageOf, positionOf } from "./page.ts";

const FOLDER = "/v1/endpoints";
const ONE = `${FOLDER}/{id}`;

export const endpointOperations: readonly Operation[] = [
  {
    id: "createEndpoint",
    method: "post",
    path: FOLDER,
    summary: "Name an endpoint for runs to use; it is asked once what it supports",
    description:
      "The probe takes at most 10 seconds and refuses nothing: what went wrong stands in `capabilities.error`.",
    headers: IDEMPOTENCY_HEADER,
    body: { schema: EndpointRequest, example: ENDPOINT_REQUEST },
    reply: {
      status: 201,
      description: "The endpoint, without its key",
      contentType: "application/json",
      schema: EndpointView,
      example: ENDPOINT,
      headers: CREATED_HEADERS,
    },
    errors: ["invalid_request", "unknown_field", "url_not_allowed", "conflict", "idempotency_conflict", "too_large"],
    handle: createOne,
  },
  {
    id: "listEndpoints",
    method: "get",
    path: FOLDER,
    summary: "List endpoints; those given with a run are not among them",
    query: PageQuery,
    reply: {
      status: 200,
      description: "One page of endpoints",
      contentType: "application/json",
      schema: EndpointList,
      example: pageOf([ENDPOINT], 1),
    },
    errors: ["invalid_request", "unknown_field"],
    handle: listPage,
  },
  {
    id: "getEndpoint",
    method: "get",
    path: ONE,
    summary: "Read an endpoint, by id or name",
    reply: {
      status: 200,
      description: "The endpoint, without its key",
      contentType: "application/json",
      schema: EndpointView,
      example: ENDPOINT,
    },
    errors: ["not_found"],
    handle: async (context) => context.json(endpointViewOf(await found(context))),
  },
  {
    id: "updateEndpoint",
    method: "patch",
    path: ONE,
    summary: "Change an endpoint, by id or name: only what is named",
    description:
      "Runs under way use another key or address after 5 minutes at the latest. An address on another server needs the key again, or null for none: a stored key goes nowhere but to the server it was given for. Another key or address is probed anew.",
    body: { schema: EndpointPatch, example: { api_key: "sk-gh78ij90kl12" } },
    reply: {
      status: 200,
      description: "The endpoint as it is now",
      contentType: "application/json",
      schema: EndpointView,
      example: { ...ENDPOINT, api_key_last4: "kl12" },
    },
    errors: ["invalid_request", "unknown_field", "url_not_allowed", "not_found", "conflict", "too_large"],
    handle: changeOne,
  },
  {
    id: "deleteEndpoint",
    method: "delete",
    path: ONE,
    summary: "Delete an endpoint that no run uses any more, by id or name",
    description: "Its key is gone for good and its name is free. Runs that used it still show it.",
    reply: {
      status: 200,
      description: "It is gone",
      contentType: "application/json",
      schema: Deleted,
      example: { object: "endpoint", id: ENDPOINT.id, deleted: true },
    },
    errors: ["not_found", "conflict"],
    handle: deleteOne,
  },
  {
    id: "probeEndpoint",
    method: "post",
    path: `${ONE}/probe`,
    summary: "Ask an endpoint again what it supports",
    headers: { "Idempotency-Key": "accepted and not needed: asking changes nothing there" },
    reply: {
      status: 200,
      description: "The endpoint with what was found; what went wrong is capabilities.error",
      contentType: "application/json",
      schema: EndpointView,
      example: ENDPOINT,
    },
    errors: ["not_found", "conflict"],
    handle: probeOne,
  },
];

async function createOne(context: ApiContext): Promise<Response> {
  const { request, options } = await readCreation(context, EndpointRequest);
  const { services } = context.var.dependencies;
  const made = await services.createEndpoint(context.env, context.var.scope, request, options);
  return creationReply(context, unwrap(made), { folder: FOLDER, status: 201 });
}

async function listPage(context: ApiContext): Promise<Response> {
  const query = parseAs(PageQuery, queryOf(context.req.url));
  const [database, scope] = [context.env.DB, context.var.scope];
  const rows = await listEndpoints(database, scope, {
    after: await positionOf(query.after, "an endpoint", (id) => findEndpoint(database, scope, id)),
    limit: query.limit + 1,
    order: query.order,
  });
  return context.json(pageOf(rows.map(endpointViewOf), query.limit));
}

async function changeOne(context: ApiContext): Promise<Response> {
  const patch = parseAs(EndpointPatch, await readJson(context.req.raw));
  const { services, now } = context.var.dependencies;
  const id = pathParam(context, "id");
  const changed = services.changeEndpoint(context.env, context.var.scope, id, patch, now());
  return context.json(unwrap(await changed));
}

async function deleteOne(context: ApiContext): Promise<Response> {
  const { services, now } = context.var.dependencies;
  const named = pathParam(context, "id");
  const { id } = unwrap(await services.deleteEndpoint(context.env, context.var.scope, named, now()));
  return context.json({ object: "endpoint", id, deleted: true });
}

async function probeOne(context: ApiContext): Promise<Response> {
  idempotencyKeyOf(context.req.raw);
  const { services, now } = context.var.dependencies;
  const id = pathParam(context, "id");
  return context.json(unwrap(await services.probeEndpoint(context.env, context.var.scope, id, now())));
}

async function found(context: ApiContext): Promise<NamedEndpoint> {
  const id = pathParam(context, "id");
  const endpoint = await findEndpoint(context.env.DB, context.var.scope, id);
  if (endpoint !== null) return endpoint;
  throw new Refusal({ code: "not_found", message: `no endpoint ${id}`, param: "id" });
}
