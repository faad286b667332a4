/**
 * A route's way to its service and back: the query or the body, the object that the path names, and the key under which a
 * repeat is known. Whatever cannot be read, and whatever a service refuses, is thrown as a Refusal.
 */
import type * as z from "zod";
import { canonicalJson, type Json } from "../../contract/json.ts";
import type { Scope } from "../../contract/scope.ts";
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

/** `parse` as in `readJson`. A POST may carry an Idempotency-Key, which is held to its form here and not needed. */
export async function readBody<Schema extends z.ZodType>(
  context: ApiContext,
  schema: Schema,
  parse?: (text: string) => Json,
): Promise<z.output<Schema>> {
  if (context.req.method === "POST") idempotencyKeyOf(context.req.raw);
  return parseAs(schema, await readJson(context, parse));
}

/** What a service says of the object that the path names. */
export async function ask<Rest extends readonly unknown[], T>(
  context: ApiContext,
  service: (env: Env, scope: Scope, id: string, ...rest: Rest) => Promise<Result<T>>,
  ...rest: Rest
): Promise<T> {
  return unwrap(await service(context.env, context.var.scope, pathParam(context, "id"), ...rest));
}

/** The same as a reply. The key of a POST without a body is held to its form, and not needed. */
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
  find: (database: D1Database, scope: Scope, nameOrId: string) => Promise<Row | null>,
): Promise<Row> {
  return (await find(context.env.DB, context.var.scope, pathParam(context, "id"))) ?? nothingAt(context, what);
}

/** Throws: what the path names is not there. */
export function nothingAt(context: ApiContext, what: string): never {
  throw new Refusal({ code: "not_found", message: `no ${what} ${pathParam(context, "id")}`, param: "id" });
}

/** A request that makes something: its body, and what a repeat of it is known by. */
export async function readCreation<Schema extends z.ZodType>(
  context: ApiContext,
  schema: Schema,
): Promise<{ request: z.output<Schema>; options: CreateOptions }> {
  const idempotencyKey = idempotencyKeyOf(context.req.raw);
  const body = await readJson(context);
  const request = parseAs(schema, body);
  // The hash is of what was sent, not of what the defaults made of it: a new default must not turn a repeat away.
  const [requestHash, ...requestHashesBefore] = keyedHashes(context.env, canonicalJson(body));
  const { origin } = new URL(context.req.url);
  const { who: payer } = context.var.caller;
  const repeats = { idempotencyKey, requestHash, requestHashesBefore };
  return { request, options: { ...repeats, now: context.var.now(), origin, payer } };
}

/** What was made, and where to read it. */
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
