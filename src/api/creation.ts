/** Requests that make something: the body, and the key under which a repeat is known. */
import type * as z from "zod";
import { canonicalJson } from "../contract/json.ts";
import { keyedHash } from "../runtime/kit/secrets.ts";
import { idempotencyKeyOf, parseAs, readJson } from "./input.ts";
import type { ApiContext } from "./operation.ts";
import type { CreateOptions } from "./services.ts";

export const IDEMPOTENCY_HEADER = {
  "Idempotency-Key": "the same key and body again gives what the first made, and makes nothing",
};
export const CREATED_HEADERS = {
  location: "where it is read",
  "idempotent-replayed": "true when the key named what was already there",
};

export async function readCreation<Schema extends z.ZodType>(
  context: ApiContext,
  schema: Schema,
): Promise<{ request: z.output<Schema>; options: CreateOptions }> {
  const idempotencyKey = idempotencyKeyOf(context.req.raw);
  const body = await readJson(context.req.raw);
  const request = parseAs(schema, body);
  // The hash is of what was sent, not of what the defaults made of it: a new default must not turn a repeat away.
  const requestHash = keyedHash(context.env.ROLLCALL_SECRET, canonicalJson(body));
  const { origin } = new URL(context.req.url);
  const now = context.var.dependencies.now();
  return { request, options: { idempotencyKey, requestHash, now, origin } };
}

/** What was made, and where it is read. */
export function creationReply(
  context: ApiContext,
  made: { readonly value: { readonly id: string }; readonly replayed: boolean },
  { folder, status }: { folder: string; status: 201 | 202 },
): Response {
  context.header("location", `${folder}/${made.value.id}`);
  if (made.replayed) context.header("idempotent-replayed", "true");
  return context.json(made.value, status);
}
