/**
 * Whether an offer is the platform's, by Standard Webhooks 1.0.0 (standardwebhooks.com).
 *
 * Invariants. The bytes that came are checked, not what they parse to. An old request sent again is refused by its time.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";

const PREFIX = "whsec_";
const TOLERANCE_S = 300;

/** `now`: epoch milliseconds. */
export function isSigned(secret: string, headers: IncomingHttpHeaders, body: Buffer, now: number): boolean {
  const [id, timestamp, signatures] = ["id", "timestamp", "signature"].map((name) => {
    const value = headers[`webhook-${name}`];
    return typeof value === "string" ? value : "";
  });
  if (!(Math.abs(now / 1000 - Number(timestamp)) <= TOLERANCE_S)) return false;
  const hmac = createHmac("sha256", keyOf(secret)).update(`${id}.${timestamp}.`).update(body);
  const expected = Buffer.from(`v1,${hmac.digest("base64")}`);
  return (signatures ?? "").split(" ").some((signature) => {
    const given = Buffer.from(signature);
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
}

function keyOf(secret: string): Buffer {
  return secret.startsWith(PREFIX) ? Buffer.from(secret.slice(PREFIX.length), "base64") : Buffer.from(secret, "utf8");
}
