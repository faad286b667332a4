/** `npm run test:poison`: in each test workerd is ended and started again several times. */
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: { include: ["test/poison/*.test.ts"], testTimeout: 300_000, hookTimeout: 60_000 },
});
