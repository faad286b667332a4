/** Secrets of environments: create, list, read, change, delete. A value goes in and never comes out. */
import { Deleted, SecretList, SecretPatch, SecretRequest, SecretView } from "../contract/endpoint.ts";
import type { SecretRow } from "../db/schema.ts";

import { deleteSecret, findSecret, listSecrets, secretViewOf } from "../db/secrets.ts";
import { CREATED_HEADERS, creationReply, IDEMPOTENCY_HEADER, readCreation } from "./creation.ts";
import { Refusal, unwrap } from "./errors.ts";
import { parseAs, queryOf, readJson } from "./input.ts";
import { SECRET } from "./openapi/endpoint-examples.ts";
import { type ApiContext, type Operation, pathParam } from "./operation.ts";
import { PageQuery, pageOf, positionOf } from "./page.ts";

const FOLDER = "/v1/secrets";
const ONE = `${FOLDER}/{id}`;

export const secretOperations: readonly Operation[] = [
  {
    id: "createSecret",
    method: "post",
    path: FOLDER,
    summary: "Store a value for environments that need secret:NAME",
    headers: IDEMPOTENCY_HEADER,
    body: { schema: SecretRequest, example: { name: SECRET.name, value: "ab12cd34ef56" } },
    reply: {
      status: 201,
      description: "The secret, without its value",
      contentType: "application/json",
      schema: SecretView,
      example: SECRET,
      headers: CREATED_HEADERS,
    },
    errors: ["invalid_request", "unknown_field", "conflict", "idempotency_conflict", "too_large"],
    handle: createOne,
  },
  {
    id: "listSecrets",
    method: "get",
    path: FOLDER,
    summary: "List secrets by name",
    query: PageQuery,
    reply: {
      status: 200,
      description: "One page of secrets, without their values",
      contentType: "application/json",
      schema: SecretList,
      example: pageOf([SECRET], 1),
    },
    errors: ["invalid_request", "unknown_field"],
    handle: listPage,
  },
  {
    id: "getSecret",
    method: "get",
    path: ONE,
    summary: "Read when a secret was set, by id or name",
    reply: {
      status: 200,
      description: "The secret, without its value",
      contentType: "application/json",
      schema: SecretView,
      example: SECRET,
    },
    errors: ["not_found"],
    handle: async (context) => context.json(secretViewOf(await found(context))),
  },
  {
    id: "updateSecret",
    method: "patch",
    path: ONE,
    summary: "Set another value, by id or name",
    description: "Rollouts under way know it after 5 minutes at the latest.",
    body: { schema: SecretPatch, example: { value: "gh78ij90kl12" } },
    reply: {
      status: 200,
      description: "The secret, without its value",
      contentType: "application/json",
      schema: SecretView,
      example: SECRET,
    },
    errors: ["invalid_request", "unknown_field", "not_found", "too_large"],
    handle: changeOne,
  },
  {
    id: "deleteSecret",
    method: "delete",
    path: ONE,
    summary: "Delete a secret, by id or name",
    description: "A rollout that asks for it from then on (after 5 minutes at the latest) fails: environment.",
    reply: {
      status: 200,
      description: "It is gone",
      contentType: "application/json",
      schema: Deleted,
      example: { object: "secret", id: SECRET.id, deleted: true },
    },
    errors: ["not_found"],
    handle: async (context) => {
      const { id } = await found(context);
      await deleteSecret(context.env.DB, context.var.scope, id);
      return context.json({ object: "secret", id, deleted: true });
    },
  },
];

async function createOne(context: ApiContext): Promise<Response> {
  const { request, options } = await readCreation(context, SecretRequest);
  const { services } = context.var.dependencies;
  const made = await services.createSecret(context.env, context.var.scope, request, options);
  return creationReply(context, unwrap(made), { folder: FOLDER, status: 201 });
}

async function listPage(context: ApiContext): Promise<Response> {
  const query = parseAs(PageQuery, queryOf(context.req.url));
  const [database, scope] = [context.env.DB, context.var.scope];
  const rows = await listSecrets(database, scope, {
    after: await positionOf(query.after, "a secret", (id) => findSecret(database, scope, id)),
    limit: query.limit + 1,
    order: query.order,
  });
  return context.json(pageOf(rows.map(secretViewOf), query.limit));
}

async function changeOne(context: ApiContext): Promise<Response> {
  const { value } = parseAs(SecretPatch, await readJson(context.req.raw));
  const { services, now } = context.var.dependencies;
  const id = pathParam(context, "id");
  const changed = services.changeSecret(context.env, context.var.scope, id, value, now());
  return context.json(unwrap(await changed));
}

async function found(context: ApiContext): Promise<SecretRow> {
  const id = pathParam(context, "id");
  const secret = await findSecret(context.env.DB, context.var.scope, id);
  if (secret !== null) return secret;
  throw new Refusal({ code: "not_found", message: `no secret ${id}`, param: "id" });
}
