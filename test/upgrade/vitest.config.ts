/** `npm run test:upgrade`: runs are played while this version and release 0.2.0 are live at once. Takes some minutes. */
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: { include: ["test/upgrade/*.test.ts"], testTimeout: 1_800_000, hookTimeout: 600_000 },
});
