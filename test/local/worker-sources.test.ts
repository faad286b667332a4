/** The files whose changes make the local boot bundle the Worker again. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import * as z from "zod";
import { bundleWorker } from "../../src/local/bundle.ts";
import { PACKAGE_ROOT, workerSources } from "../../src/local/package-root.ts";

const SourceMap = z.object({ sources: z.array(z.string()) });

test("every file in the Worker's bundle counts", async () => {
  const bundle = await bundleWorker(PACKAGE_ROOT);
  const { sources } = SourceMap.parse(JSON.parse(readFileSync(`${bundle}.map`, "utf8")));
  const own = sources
    .map((source) => source.replace(/^(\.\.\/)+/, ""))
    .filter((file) => file.startsWith("src/") || file.startsWith("packages/") || file.startsWith("environments/"));
  expect(own.length).toBeGreaterThan(300);
  const counted = new Set(workerSources(PACKAGE_ROOT));
  expect(own.filter((file) => !counted.has(file))).toEqual([]);
});
