/** Reads the token of a request, and makes the refusal for a missing or wrong one. */
import { Refusal } from "./errors.ts";
import type { ApiContext } from "./operation.ts";

/** Throws if there is none. The password of HTTP basic authentication counts if the operation takes it. */
export function bearerOf({ req, var: { operation } }: ApiContext, what: "key" | "token"): string {
  const [, scheme, token] = /^(Bearer|Basic) +(\S+) *$/i.exec(req.header("authorization") ?? "") ?? [];
  if (token !== undefined && scheme?.toLowerCase() === "bearer") return token;
  const password = token !== undefined && operation.basic === true ? passwordIn(token) : null;
  if (password !== null) return password;
  throw unauthorized(`send your ${what} as: Authorization: Bearer <${what}>`);
}

/** Of base64 of `user:password`; null if it is not that. */
function passwordIn(base64: string): string | null {
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(base64) || base64.length % 4 !== 0) return null;
  const [, ...rest] = atob(base64).split(":");
  return rest.length === 0 ? null : rest.join(":");
}

export function unauthorized(message: string): Refusal {
  return new Refusal({ code: "unauthorized", message, param: null }, { headers: { "www-authenticate": "Bearer" } });
}
