/** The keys that a signing secret stands for. */
import { readSigningSecret } from "../../contract/signing-secret.ts";

const BASE64 = /^[A-Za-z0-9+/]{22,}={0,2}$/;

/** The key to sign with, the first of several. Empty where the secret is no key. */
export function signingKey(secret: string): Uint8Array {
  const read = readSigningSecret(secret);
  return "text" in read ? Buffer.from(read.text, "utf8") : Buffer.from(read.base64[0] ?? "", "base64");
}

/**
 * Every key that a sender may have signed with. The libraries of Standard Webhooks take a secret without whsec_ for base64, others
 * take it as it stands: a text that can be both is both.
 */
export function verifyingKeys(secret: string): Uint8Array[] {
  const read = readSigningSecret(secret);
  if (!("text" in read)) return read.base64.map((key) => Buffer.from(key, "base64"));
  const plain = Buffer.from(read.text, "utf8");
  return BASE64.test(read.text) ? [plain, Buffer.from(read.text, "base64")] : [plain];
}
