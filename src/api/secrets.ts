/** Secrets of environments: create, list, read, change, delete. A value goes in and never comes out. */

import { Deleted, SecretList, SecretPatch, SecretRequest, SecretView } from "../contract/endpoint.ts";
import { EXAMPLE } from "../contract/primitives.ts";
import type { SecretRow } from "../db/schema.ts";

import { deleteSecret, findSecret, listSecrets, secretViewOf } from "../db/secrets.ts";

import {
  answer,
  CREATED_HEADERS,
  creationReply,
  IDEMPOTENCY_HEADER,
  readBody,
  readCreation,
  readQuery,
} from "./answer.ts";
import { Refusal, unwrap } from "./errors.ts";
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
    body: { schema: SecretRequest, example: { name: "SEARCH_KEY", value: "ab12cd34ef56" } },
    reply: { status: 201, description: "The secret, without its value", schema: SecretView, headers: CREATED_HEADERS },
    errors: ["conflict", "idempotency_conflict"],
    handle: createOne,
  },
  {
    id: "listSecrets",
    method: "get",
    path: FOLDER,
    summary: "List secrets by name",
    query: PageQuery,
    reply: { description: "One page of secrets, without their values", schema: SecretList },
    handle: listPage,
  },
  {
    id: "getSecret",
    method: "get",
    path: ONE,
    summary: "Read when a secret was set, by id or name",
    reply: { description: "The secret, without its value", schema: SecretView },
    handle: async (context) => context.json(secretViewOf(await found(context))),
  },
  {
    id: "updateSecret",
    method: "patch",
    path: ONE,
    summary: "Set another value, by id or name",
    description: "Rollouts under way know it after 5 minutes at the latest.",
    body: { schema: SecretPatch, example: { value: "gh78ij90kl12" } },
    reply: { description: "The secret, without its value", schema: SecretView },
    handle: changeOne,
  },
  {
    id: "deleteSecret",
    method: "delete",
    path: ONE,
    summary: "Delete a secret, by id or name",
    description: "A rollout that asks for it from then on (after 5 minutes at the latest) fails: environment.",
    reply: { description: "It is gone", schema: Deleted, example: { object: "secret", id: EXAMPLE.secret } },
    handle: async (context) => {
      const { id } = await found(context);
      await deleteSecret(context.env.DB, context.var.scope, id);
      return context.json({ object: "secret", id, deleted: true });
    },
  },
];

async function createOne(context: ApiContext): Promise<Response> {
  const { request, options } = await readCreation(context, SecretRequest);
  const made = await context.var.services.createSecret(context.env, context.var.scope, request, options);
  const { value, replayed } = unwrap(made);
  return creationReply(context, { folder: FOLDER, status: 201 }, value, replayed);
}

async function listPage(context: ApiContext): Promise<Response> {
  const query = readQuery(context, PageQuery);
  const [database, scope] = [context.env.DB, context.var.scope];
  const rows = await listSecrets(database, scope, {
    after: await positionOf(query.after, "a secret", (id) => findSecret(database, scope, id)),
    limit: query.limit + 1,
    order: query.order,
  });
  return context.json(pageOf(rows.map(secretViewOf), query.limit));
}

async function changeOne(context: ApiContext): Promise<Response> {
  const { value } = await readBody(context, SecretPatch);
  return answer(context, context.var.services.changeSecret, value, context.var.now());
}

async function found(context: ApiContext): Promise<SecretRow> {
  const id = pathParam(context, "id");
  const secret = await findSecret(context.env.DB, context.var.scope, id);
  if (secret !== null) return secret;
  throw new Refusal({ code: "not_found", message: `no secret ${id}`, param: "id" });
}
