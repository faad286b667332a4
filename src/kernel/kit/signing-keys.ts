/** Derives keys from a signing secret. */
import { readSigningSecret } from "../../contract/signing-secret.ts";

const BASE64 = /^[A-Za-z0-9+/]{22,}={0,2}$/;

/** The key to sign with: the first if there are several. Empty if the secret is not a valid key. */
export function signingKey(secret: string): Uint8Array {
  const read = readSigningSecret(secret);
  return "text" in read ? Buffer.from(read.text, "utf8") : Buffer.from(read.base64[0] ?? "", "base64");
}

/**
 * Every key that a sender may have signed with. The libraries of Standard Webhooks read a secret without whsec_ as
 * base64, others use it as plain text. If a text can be both, both keys are returned.
 */
export function verifyingKeys(secret: string): Uint8Array[] {
  const read = readSigningSecret(secret);
  if (!("text" in read)) return read.base64.map((key) => Buffer.from(key, "base64"));
  const plain = Buffer.from(read.text, "utf8");
  return BASE64.test(read.text) ? [plain, Buffer.from(read.text, "base64")] : [plain];
}
