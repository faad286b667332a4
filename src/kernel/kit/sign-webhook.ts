/**
 * Signs a request by Standard Webhooks 1.0.0 (standardwebhooks.com): its receiver checks with any library of that name
 * who sent it, that nothing was changed, and, by time and id, that it is not an old one sent again.
 */
import { Webhook } from "standardwebhooks";
import { signingKey } from "./signing-keys.ts";

/**
 * The headers of one try. `secrets`: each signs, the newest first. `id`: the same for every repeat of the request, without
 * a ".". `now`: epoch milliseconds. Throws for a secret that is no key.
 */
export function signedHeaders(
  secrets: string | readonly string[],
  id: string,
  body: string,
  now: number,
): Record<string, string> {
  const at = new Date(now);
  const all = typeof secrets === "string" ? [secrets] : secrets;
  return {
    "webhook-id": id,
    "webhook-timestamp": String(Math.floor(now / 1000)),
    "webhook-signature": all.map((secret) => signerOf(secret).sign(id, at, body)).join(" "),
  };
}

function signerOf(secret: string): Webhook {
  const key = signingKey(secret);
  if (key.length > 0) return new Webhook(key, { format: "raw" });
  throw new Error("a signing secret must be text, or whsec_ and base64: set it again");
}
