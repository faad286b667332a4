/**
 * The settings of `npm run test:package`: npm installs into empty folders, which takes longer than any other suite's
 * limit.
 */
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: { include: ["test/package/**/*.test.ts"], testTimeout: 30_000 },
});
