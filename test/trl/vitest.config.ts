/** `npm run test:trl`: the first run installs TRL and torch, which takes minutes and some gigabytes. */
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: { include: ["test/trl/*.test.ts"], testTimeout: 600_000, hookTimeout: 1_800_000 },
});
