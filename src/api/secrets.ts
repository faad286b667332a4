/** Secrets of environments: create, list, read, change, delete. A value goes in and never comes out. */
import { Deleted, SecretList, SecretPatch, SecretRequest, SecretView } from "../contract/endpoint.ts";
import { EXAMPLE } from "../contract/primitives.ts";
import { deleteSecret, findSecret, listSecrets, secretViewOf } from "../db/secrets.ts";
import {
  answer,
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

const FOLDER = "/v1/secrets";
const ONE = `${FOLDER}/{id}`;

export const secretOperations: readonly Operation[] = [
  {
    id: "createSecret",
    route: `POST ${FOLDER}`,
    permission: "secrets:write",
    summary: "Store a value for environments that need secret:NAME",
    headers: IDEMPOTENCY_HEADER,
    body: { schema: SecretRequest, example: { name: "SEARCH_KEY", value: "ab12cd34ef56" } },
    reply: { status: 201, description: "The secret, without its value", schema: SecretView, headers: CREATED_HEADERS },
    errors: ["conflict", "idempotency_conflict"],
    handle: createOne,
  },
  {
    id: "listSecrets",
    route: `GET ${FOLDER}`,
    permission: "secrets:read",
    summary: "List secrets by name",
    query: PageQuery,
    reply: { description: "One page of secrets, without their values", schema: SecretList },
    handle: (context) => listReply(context, "a secret", findSecret, listSecrets, secretViewOf),
  },
  {
    id: "getSecret",
    route: `GET ${ONE}`,
    permission: "secrets:read",
    summary: "Read when a secret was set, by id or name",
    reply: { description: "The secret, without its value", schema: SecretView },
    handle: async (context) => context.json(secretViewOf(await storedRow(context, "secret", findSecret))),
  },
  {
    id: "updateSecret",
    route: `PATCH ${ONE}`,
    permission: "secrets:write",
    summary: "Set another value, by id or name",
    description: "Rollouts under way know it after 5 seconds at the latest.",
    body: { schema: SecretPatch, example: { value: "gh78ij90kl12" } },
    reply: { description: "The secret, without its value", schema: SecretView },
    handle: changeOne,
  },
  {
    id: "deleteSecret",
    route: `DELETE ${ONE}`,
    permission: "secrets:write",
    summary: "Delete a secret, by id or name",
    description: "A rollout that asks for it from then on (after 5 seconds at the latest) fails: environment.",
    reply: { description: "It is gone", schema: Deleted, example: { object: "secret", id: EXAMPLE.secret } },
    handle: async (context) => {
      const { id } = await storedRow(context, "secret", findSecret);
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

async function changeOne(context: ApiContext): Promise<Response> {
  const { value } = await readBody(context, SecretPatch);
  return answer(context, context.var.services.changeSecret, value, context.var.now());
}
