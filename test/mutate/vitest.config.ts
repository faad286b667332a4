/** The tests for edits that run in Node, without the set-up of the rest of the suite. */
import { resolve } from "node:path";
import { defineConfig } from "vitest/config";
import { packageNames } from "../../scripts/package-names.ts";

const ROOT = resolve(import.meta.dirname, "../..");

export default defineConfig({
  root: ROOT,
  resolve: { alias: packageNames(ROOT) },
  test: {
    include: [
      "test/{contract,core}/**/*.test.ts",
      "test/kernel/clients/*.test.ts",
      "test/conformance/vectors.test.ts",
      "test/packages/policy/exact.test.ts",
      "test/kernel/**/*.node.test.ts",
    ],
    globalSetup: ["./test/conformance/provide-vectors.ts"],
    provide: { histories: 1 },
    isolate: false,
    maxWorkers: 1,
    // Within one process, so that ending it ends an edit's endless loop.
    pool: "threads",
  },
});
