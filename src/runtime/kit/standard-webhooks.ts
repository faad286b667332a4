/**
 * Signs a request by Standard Webhooks 1.0.0 (standardwebhooks.com): its receiver checks with any library of that name
 * who sent it, that nothing was changed, and, by time and id, that it is not an old one sent again.
 */

/** A secret with this prefix is base64 of the key; any other is the key itself, as UTF-8. */
const PREFIX = "whsec_";

/** `id`: the same for every repeat of the request, without a ".". `now`: epoch milliseconds. */
export async function signedHeaders(
  secret: string,
  id: string,
  body: string,
  now: number,
): Promise<Record<string, string>> {
  const timestamp = String(Math.floor(now / 1000));
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", keyOf(secret), algorithm, false, ["sign"]);
  const text = new TextEncoder().encode(`${id}.${timestamp}.${body}`);
  const signature = Buffer.from(await crypto.subtle.sign("HMAC", key, text)).toString("base64");
  return {
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    "webhook-signature": `v1,${signature}`,
  };
}

function keyOf(secret: string): Uint8Array {
  const key = secret.startsWith(PREFIX)
    ? Buffer.from(secret.slice(PREFIX.length), "base64")
    : Buffer.from(secret, "utf8");
  if (key.length > 0) return key;
  throw new Error(`a signing secret is text, or ${PREFIX} and base64: set it again`);
}
