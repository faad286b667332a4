import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { Sha256 } from "../../src/sdk/sha256.ts";

const BYTES = Uint8Array.from({ length: 300 }, (_, at) => (at * 167) % 256);

test("the digest is that of Node for every length around the borders of blocks, however the bytes are cut", () => {
  for (let length = 0; length <= BYTES.length; length += 1) {
    const bytes = BYTES.subarray(0, length);
    const expected = createHash("sha256").update(bytes).digest("hex");
    for (const cut of [1, 7, 63, 64, 65, 300]) {
      const hash = new Sha256();
      for (let at = 0; at < length; at += cut) hash.update(bytes.subarray(at, at + cut));
      expect(hash.digest()).toBe(expected);
    }
  }
});
