/** Reads the token of a request, and makes the refusal for a missing or wrong one. */
import { Refusal } from "./errors.ts";
import type { ApiContext } from "./operation.ts";

/** Throws if there is none. */
export function bearerOf({ req }: ApiContext, what: "key" | "token"): string {
  const token = /^Bearer +(\S+) *$/i.exec(req.header("authorization") ?? "")?.[1];
  if (token !== undefined) return token;
  throw unauthorized(`send your ${what} as: Authorization: Bearer <${what}>`);
}

export function unauthorized(message: string): Refusal {
  return new Refusal({ code: "unauthorized", message, param: null }, { headers: { "www-authenticate": "Bearer" } });
}
