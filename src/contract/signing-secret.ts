/**
 * The secrets that senders of webhooks sign with, in the notations of their senders. Source: Standard Webhooks 1.0.0,
 * "Signature scheme", and its libraries; Supabase's Auth Hooks, which write `v1,whsec_…` and `|` between several.
 *
 * Invariants. A secret that looks like one of Standard Webhooks is parsed or refused, and never taken for a plain text:
 * with that, the signature of every delivery would be wrong.
 */
/** Either the base64 of one or more keys, or a text. */
export type SigningSecret = { readonly base64: readonly string[] } | { readonly text: string };

const SHORTEST = 16;
const MOST_KEYS = 8;
const VISIBLE = /^[\x21-\x7e]+$/;
const ENCODED = /^(?:v1,)?whsec_/;
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;
/** Searched anywhere in the secret, in any case: it may have quotation marks or a name around it. */
const LOOKS_ENCODED = /whsec|^v\d+[a-z]?,/i;
const ASYMMETRIC = /wh[sp]k_|^v1a,/i;

export function readSigningSecret(secret: string): SigningSecret {
  const text = secret.trim();
  const parts = text.split(/[\s|]+/);
  if (!parts.every((part) => ENCODED.test(part))) return { text };
  return { base64: parts.map((part) => part.replace(ENCODED, "")) };
}

/** What is wrong with a sender's secret for this scheme (`TriggerScheme`); null if nothing is wrong. */
export function faultInSecret(scheme: string, secret: string): string | null {
  if (scheme !== "standard") return faultInText(secret);
  const read = readSigningSecret(secret);
  if ("text" in read) return formFault(read.text) ?? faultInText(read.text);
  if (read.base64.length > MOST_KEYS) return `has more than ${MOST_KEYS} secrets`;
  return read.base64.every(isLongKey) ? null : `must have base64 of at least ${SHORTEST} bytes after whsec_`;
}

function faultInText(text: string): string | null {
  if (!VISIBLE.test(text)) return "must be visible ASCII characters, without spaces";
  return text.length < SHORTEST ? `must be at least ${SHORTEST} characters` : null;
}

function formFault(text: string): string | null {
  if (ASYMMETRIC.test(text)) return "is a key for v1a signatures, which are not supported: use the v1 secret, whsec_…";
  if (LOOKS_ENCODED.test(text)) return "must be whsec_ and base64, optionally after v1,; separate several by spaces";
  return null;
}

/** The length of base64 is never one more than a multiple of four. */
function isLongKey(base64: string): boolean {
  const characters = base64.replace(/=+$/, "").length;
  return BASE64.test(base64) && characters % 4 !== 1 && Math.floor((characters * 3) / 4) >= SHORTEST;
}
