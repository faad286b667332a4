/**
 * The objects of a batch, out of the one stream that has them all.
 *
 * Invariants. What comes back is what the manifest names, byte for byte: every object is held against its digest.
 */
import type { BatchManifest } from "../contract/trainer-wire.ts";

/** Bytes that are not those the manifest names. */
export class BatchDigestError extends Error {
  override readonly name = "BatchDigestError";
}

/** `joined`: every object, one after another, in the manifest's order. Throws BatchDigestError. */
export async function splitObjects(
  { objects }: Pick<BatchManifest, "objects">,
  joined: Uint8Array<ArrayBuffer>,
): Promise<Uint8Array<ArrayBuffer>[]> {
  const size = objects.reduce((sum, { bytes }) => sum + bytes, 0);
  if (joined.byteLength !== size) {
    throw new BatchDigestError(`the objects have ${size} bytes, and ${joined.byteLength} came`);
  }
  let from = 0;
  const parts = objects.map(({ bytes }) => {
    from += bytes;
    return joined.subarray(from - bytes, from);
  });
  await Promise.all(parts.map((part, at) => checkDigest(part, objects[at]?.sha256 ?? "")));
  return parts;
}

/** Throws BatchDigestError. */
export async function checkDigest(bytes: Uint8Array<ArrayBuffer>, sha256: string): Promise<void> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  const found = Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
  if (found !== sha256) {
    throw new BatchDigestError(`an object's digest is ${found}, not ${sha256}`);
  }
}
