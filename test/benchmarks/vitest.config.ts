/** `npm run test:benchmarks`: the first run installs lm-eval and math-verify, some 600 MB. */
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: { include: ["test/benchmarks/*.test.ts"], testTimeout: 600_000, hookTimeout: 1_800_000 },
});
