/** `npm run test:vllm`: a real vLLM, which is slow to install and slow to start, and training runs with it. */
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/vllm/*.test.ts"],
    globalSetup: ["test/vllm/global-setup.ts"],
    // Each file starts a server of its own.
    fileParallelism: false,
    testTimeout: 600_000,
    hookTimeout: 600_000,
  },
});
