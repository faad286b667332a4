/** `npm run test:web`: the page in a browser against one platform; takes some minutes. */
import { defineConfig } from "vitest/config";
import { bundleWorkerWith } from "../../src/local/bundle.ts";
import { TEST_HANGS_MS, WAIT_HANGS_MS } from "../hang-limits.ts";
import { PLANTING, ROOT } from "./planting.ts";

// The set-up of the tests boots it in a place where nothing can be bundled.
await bundleWorkerWith(ROOT, { environments: [], ...PLANTING });

export default defineConfig({
  test: {
    include: ["test/web/*.test.ts"],
    exclude: ["**/*.node.test.ts"],
    globalSetup: ["test/web/stage.ts"],
    ...{ isolate: false, fileParallelism: false, testTimeout: TEST_HANGS_MS, hookTimeout: TEST_HANGS_MS },
    expect: { poll: { timeout: WAIT_HANGS_MS } },
  },
});
