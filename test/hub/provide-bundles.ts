/** Bundles environments for isolates of their own: only Node has the bundler. */
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { bundleEnvironment, type EnvironmentBundle } from "../../src/local/environment-bundle.ts";

declare module "vitest" {
  interface ProvidedContext {
    bundles: Readonly<Record<string, EnvironmentBundle>>;
  }
}

const ROOT = join(import.meta.dirname, "../..");
const FILES = {
  calculator: "environments/calculator/environment.ts",
  "guess-number": "environments/guess-number/environment.ts",
  faulty: "test/hub/faulty.ts",
  hostile: "test/hub/hostile-environment.ts",
  judged: "test/hub/judged.ts",
  probing: "test/hub/probing.ts",
};

export default async function setup(project: TestProject): Promise<void> {
  const bundles = Object.entries(FILES).map(async ([id, file]) => [id, await bundleEnvironment(join(ROOT, file))]);
  project.provide("bundles", Object.fromEntries(await Promise.all(bundles)));
}
