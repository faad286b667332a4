/**
 * Helpers between a route and its service: they read the query or the body, the id in the path, and the idempotency
 * key, and make the reply. Input that cannot be read, and refusals of a service, are thrown as a Refusal.
 */
import type * as z from "zod";
import { canonicalJson, type Json } from "../../contract/json.ts";
import type { Scope } from "../../contract/scope.ts";
import { type Database, databaseOf } from "../db/database.ts";
import type { CreateOptions } from "../kit/idempotency.ts";
import { keyedHashes } from "../kit/secrets.ts";
import type { Result } from "../messages/refusal.ts";
import { Refusal, unwrap } from "./errors.ts";
import { idempotencyKeyOf, parseAs, queryOf, readJson } from "./input.ts";
import { type ApiContext, pathParam } from "./operation.ts";

export const IDEMPOTENCY_HEADER = {
  "Idempotency-Key": "a repeat with the same key and body returns what the first request created",
};
export const CREATED_HEADERS = {
  location: "where to read it",
  "idempotent-replayed": "true when this is a replay of an earlier request",
};

export function readQuery<Schema extends z.ZodType>({ req }: ApiContext, schema: Schema): z.output<Schema> {
  return parseAs(schema, queryOf(req.url));
}

/** `parse` as in `readJson`. A POST may have an Idempotency-Key: its format is checked, and it has no effect. */
export async function readBody<Schema extends z.ZodType>(
  context: ApiContext,
  schema: Schema,
  parse?: (text: string) => Json,
): Promise<z.output<Schema>> {
  if (context.req.method === "POST") idempotencyKeyOf(context.req.raw);
  return parseAs(schema, await readJson(context, parse));
}

/** The result of a service for the object that the path names. */
export async function ask<Rest extends readonly unknown[], T>(
  context: ApiContext,
  service: (env: Env, scope: Scope, id: string, ...rest: Rest) => Promise<Result<T>>,
  ...rest: Rest
): Promise<T> {
  return unwrap(await service(context.env, context.var.scope, pathParam(context, "id"), ...rest));
}

/** The same as a reply. The format of a POST's Idempotency-Key is checked, and the key has no effect. */
export async function answer<Rest extends readonly unknown[], T extends object>(
  context: ApiContext,
  service: (env: Env, scope: Scope, id: string, ...rest: Rest) => Promise<Result<T>>,
  ...rest: Rest
): Promise<Response> {
  if (context.req.method === "POST") idempotencyKeyOf(context.req.raw);
  return Response.json(await ask(context, service, ...rest));
}

/** The row that the path names, by id or name. */
export async function storedRow<Row>(
  context: ApiContext,
  what: string,
  find: (database: Database, scope: Scope, nameOrId: string) => Promise<Row | null>,
): Promise<Row> {
  return (await find(databaseOf(context.env), context.var.scope, pathParam(context, "id"))) ?? nothingAt(context, what);
}

/** Throws: the thing that the path names does not exist. */
export function nothingAt(context: ApiContext, what: string): never {
  throw new Refusal({ code: "not_found", message: `no ${what} ${pathParam(context, "id")}`, param: "id" });
}

/** The body of a request that creates something, and the hashes by which a repeat is recognised. */
export async function readCreation<Schema extends z.ZodType>(
  context: ApiContext,
  schema: Schema,
): Promise<{ request: z.output<Schema>; options: CreateOptions }> {
  const idempotencyKey = idempotencyKeyOf(context.req.raw);
  const body = await readJson(context);
  const request = parseAs(schema, body);
  // The hash is of the body as it was sent, without defaults: a new default must not make a repeat look different.
  const [requestHash, ...requestHashesBefore] = keyedHashes(context.env, canonicalJson(body));
  const { origin } = new URL(context.req.url);
  const { who: payer } = context.var.caller;
  const repeats = { idempotencyKey, requestHash, requestHashesBefore };
  return { request, options: { ...repeats, now: context.var.now(), origin, payer } };
}

/** The reply with what was created, and its location. */
export function creationReply(
  context: ApiContext,
  { folder, status }: { readonly folder: string; readonly status: 201 | 202 },
  value: { readonly id: string },
  replayed: boolean,
): Response {
  context.header("location", `${folder}/${value.id}`);
  if (replayed) context.header("idempotent-replayed", "true");
  return context.json(value, status);
}
