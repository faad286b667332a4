/** Keys: create, list, read, change, rotate, revoke. The key itself is in the answer that makes it, and nowhere after. */

import { EXAMPLE } from "../../contract/primitives.ts";
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
    "the same key and body again makes nothing, and answers without the key: it was said once and is kept nowhere",
};

export const keyOperations: readonly Operation[] = [
  {
    id: "createApiKey",
    route: `POST ${FOLDER}`,
    permission: "admin",
    reach: "organization",
    summary: "Make a key; it is shown here and never again",
    description:
      "It may do at most what the key that asks may do, and reaches at most as far: more is `forbidden`. Where the answer was lost, the answer to a repeat names the key without saying it: rotate that one.",
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
    summary: "List keys, those that have ended among them",
    query: PageQuery,
    reply: { description: "One page of keys, by their first and last characters", schema: ApiKeyList },
    handle: listAll,
  },
  {
    id: "getApiKey",
    route: `GET ${ONE}`,
    permission: "admin",
    reach: "organization",
    summary: "Read what a key may do",
    reply: { description: "All of it but the key itself", schema: ApiKeyView },
    handle: async (context) => context.json(keyViewOf(await rowOfOrganization(context, "key", findApiKey))),
  },
  {
    id: "updateApiKey",
    route: `PATCH ${ONE}`,
    permission: "admin",
    reach: "organization",
    summary: "Change the name of a key, what it may do, or its requests a minute",
    description: "It holds everywhere within 5 seconds. What a person's key may do is the person's role: change that.",
    body: { schema: KeyPatch, example: { scopes: ["runs:read"] } },
    reply: { description: "The key as it is now", schema: ApiKeyView, example: { scopes: ["runs:read"] } },
    errors: ["conflict"],
    handle: changeOne,
  },
  {
    id: "rotateApiKey",
    urgent: true,
    route: `POST ${ONE}/rotate`,
    permission: "admin",
    reach: "organization",
    summary: "Put a new key in the place of one, which works for the overlap still",
    description:
      "The new key has the name, the scopes, the reach, the limit and the end of the one before. A person's key is rotated by that person alone.",
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
    summary: "Revoke a key: within 5 seconds it is refused everywhere",
    description: "Revoked once more it stays as it was. It is listed among the keys that have ended.",
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
  const [database, caller] = [context.env.DB, context.var.caller];
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
