/** `npm run test:fleet`: training runs on fleets whose engines fail during updates. Takes some minutes. */
import { defineConfig } from "vitest/config";
import { Progress } from "./progress.ts";

export default defineConfig({
  test: {
    ...{ include: ["test/fleet/*.test.ts"], testTimeout: 240_000, hookTimeout: 60_000, maxConcurrency: 14 },
    reporters: [new Progress(), "default"],
  },
});
