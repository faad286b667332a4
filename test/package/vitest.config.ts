/** What `npm run test:package` runs: npm installs into empty folders, which takes longer than all of one's patience with a suite. */
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: { include: ["test/package/**/*.test.ts"], testTimeout: 30_000 },
});
