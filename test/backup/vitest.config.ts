/** `npm run test:backup`: a backup and a restore that are killed at each step. Takes ten minutes or more. */
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: { include: ["test/backup/*.test.ts"], testTimeout: 3_600_000, hookTimeout: 60_000 },
});
