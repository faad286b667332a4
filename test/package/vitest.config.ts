/** The settings of `npm run test:package`: npm installs into empty folders. */
import { defineConfig } from "vitest/config";
import { TEST_HANGS_MS } from "../hang-limits.ts";

export default defineConfig({
  test: { include: ["test/package/**/*.test.ts"], testTimeout: TEST_HANGS_MS, hookTimeout: TEST_HANGS_MS },
});
