/** `npm run test:vllm`: training runs with a real vLLM, which is slow to install and slow to start. */
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/vllm/*.test.ts"],
    globalSetup: ["test/vllm/global-setup.ts"],
    // Each file starts its own server.
    fileParallelism: false,
    testTimeout: 600_000,
    hookTimeout: 600_000,
  },
});
