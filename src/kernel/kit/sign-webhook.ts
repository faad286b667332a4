/**
 * Signs a request by Standard Webhooks 1.0.0 (standardwebhooks.com). Its receiver can verify with any library for that
 * standard who sent it, that it was not changed, and, by time and id, that it is not a replay.
 */
import { Webhook } from "standardwebhooks";
import { signingKey } from "./signing-keys.ts";

/**
 * The headers of one try. `secrets`: each one signs, the newest first. `id`: the same for every repeat of the request,
 * without a ".". `now`: epoch milliseconds. Throws if a secret is not a valid key.
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
