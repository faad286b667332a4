/** Routes for keys: create, list, read, change, rotate, revoke. The key itself is only in the reply that creates it. */

import { EXAMPLE } from "../../contract/primitives.ts";
import { databaseOf } from "../../kernel/db/database.ts";
import { CREATED_HEADERS, creationReply, readBody, readCreation } from "../../kernel/http/answer.ts";
import { unwrap } from "../../kernel/http/errors.ts";
import { type ApiContext, type Operation, pathParam, serviceOf } from "../../kernel/http/operation.ts";
import { PageQuery, pageReply } from "../../kernel/http/page.ts";
import { findApiKey, keyViewOf, listApiKeys } from "../queries/api-keys.ts";
import type { AccountsService } from "../service.ts";
import { ApiKeyList, ApiKeyView, CreatedKey, KeyPatch, KeyRequest, RotateRequest } from "../wire.ts";
import { rowOfOrganization } from "./row-of-organization.ts";

const service = serviceOf<AccountsService>("accounts");

const FOLDER = "/v1/keys";
const ONE = `${FOLDER}/{id}`;
const ONCE = {
  "Idempotency-Key":
    "a repeat with the same key and body creates nothing, and its reply lacks the API key, which is shown only once",
};

export const keyOperations: readonly Operation[] = [
  {
    id: "createApiKey",
    route: `POST ${FOLDER}`,
    permission: "admin",
    reach: "organization",
    summary: "Create a key; it is shown only once",
    description:
      "Its scopes and reach are at most those of the calling key: more is `forbidden`. If the reply was lost, a repeat returns the key's id but not the key: rotate it.",
    headers: ONCE,
    body: { schema: KeyRequest },
    reply: { status: 201, description: "The key", schema: CreatedKey, headers: CREATED_HEADERS },
    errors: ["not_found", "conflict", "idempotency_conflict"],
    handle: createOne,
  },
  {
    id: "listApiKeys",
    route: `GET ${FOLDER}`,
    permission: "admin",
    reach: "organization",
    summary: "List keys, including expired and revoked ones",
    query: PageQuery,
    reply: { description: "One page of keys, with only their first and last characters", schema: ApiKeyList },
    handle: listAll,
  },
  {
    id: "getApiKey",
    route: `GET ${ONE}`,
    permission: "admin",
    reach: "organization",
    summary: "Read a key",
    reply: { description: "The key's data, without the key itself", schema: ApiKeyView },
    handle: async (context) => context.json(keyViewOf(await rowOfOrganization(context, "key", findApiKey))),
  },
  {
    id: "updateApiKey",
    route: `PATCH ${ONE}`,
    permission: "admin",
    reach: "organization",
    summary: "Change the name, scopes or request limit of a key",
    description:
      "It takes effect within 5 seconds. A person's key has the scopes of the person's role: change the role.",
    body: { schema: KeyPatch, example: { scopes: ["runs:read"] } },
    reply: { description: "The changed key", schema: ApiKeyView, example: { scopes: ["runs:read"] } },
    errors: ["conflict"],
    handle: changeOne,
  },
  {
    id: "rotateApiKey",
    urgent: true,
    route: `POST ${ONE}/rotate`,
    permission: "admin",
    reach: "organization",
    summary: "Replace a key; the old one still works for the overlap",
    description:
      "The new key has the same name, scopes, reach, limit and expiry. Only the person can rotate a person's key.",
    headers: ONCE,
    body: { schema: RotateRequest },
    reply: { status: 201, description: "The new key", schema: CreatedKey, headers: CREATED_HEADERS },
    errors: ["conflict", "idempotency_conflict"],
    handle: rotateOne,
  },
  {
    id: "revokeApiKey",
    urgent: true,
    route: `DELETE ${ONE}`,
    permission: "admin",
    reach: "organization",
    summary: "Revoke a key: it is refused within 5 seconds",
    description: "A repeat changes nothing. The key stays in the list.",
    reply: {
      description: "The key, revoked",
      schema: ApiKeyView,
      example: { id: EXAMPLE.key, revoked_at: 1_792_000_000 },
    },
    handle: revokeOne,
  },
];

async function createOne(context: ApiContext): Promise<Response> {
  const { request, options } = await readCreation(context, KeyRequest);
  const made = await service(context).createApiKey(context.env, context.var.caller, request, options);
  const { value, replayed } = unwrap(made);
  return creationReply(context, { folder: FOLDER, status: 201 }, value, replayed);
}

async function listAll(context: ApiContext): Promise<Response> {
  const [database, caller] = [databaseOf(context.env), context.var.caller];
  const pages = {
    find: (id: string) => findApiKey(database, caller, id),
    list: (page: Parameters<typeof listApiKeys>[2]) => listApiKeys(database, caller, page),
  };
  return await pageReply(context, "a key", pages, keyViewOf);
}

async function changeOne(context: ApiContext): Promise<Response> {
  const patch = await readBody(context, KeyPatch);
  const {
    env,
    var: { caller, now },
  } = context;
  return context.json(unwrap(await service(context).changeApiKey(env, caller, pathParam(context, "id"), patch, now())));
}

async function rotateOne(context: ApiContext): Promise<Response> {
  const { request, options } = await readCreation(context, RotateRequest);
  const {
    env,
    var: { caller },
  } = context;
  const made = await service(context).rotateKey(env, caller, pathParam(context, "id"), request, options);
  const { value, replayed } = unwrap(made);
  return creationReply(context, { folder: FOLDER, status: 201 }, value, replayed);
}

async function revokeOne(context: ApiContext): Promise<Response> {
  const {
    env,
    var: { caller, now },
  } = context;
  return context.json(unwrap(await service(context).revokeKey(env, caller, pathParam(context, "id"), now())));
}
