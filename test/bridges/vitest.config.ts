/** `npm run test:bridges`: the first run installs msgpack, msgspec and numpy into a folder of the user's cache. */
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: { include: ["test/bridges/*.test.ts"], testTimeout: 240_000, hookTimeout: 600_000 },
});
