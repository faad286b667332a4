/** `npm run test:generators`: the first run installs two generators. */
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: { include: ["test/generators/*.test.ts"], testTimeout: 300_000, hookTimeout: 600_000 },
});
