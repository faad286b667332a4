/** Bundles environments for isolates of their own: only Node has the bundler. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { bundleEnvironment, type EnvironmentBundle } from "../../src/local/environment-bundle.ts";

declare module "vitest" {
  interface ProvidedContext {
    bundles: Readonly<Record<string, EnvironmentBundle>>;
    /** A server that answers `/<id>` with the code of the environment of that name: a bundle takes up to a second. */
    bundleUrl: string;
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

export default async function setup(project: TestProject): Promise<() => void> {
  const bundles = Object.entries(FILES).map(async ([id, file]) => [id, await bundleEnvironment(join(ROOT, file))]);
  project.provide("bundles", Object.fromEntries(await Promise.all(bundles)));
  const server = createServer(({ url = "" }, response) => {
    bundleEnvironment(join(ROOT, "environments", url, "environment.ts")).then(
      ({ text }) => response.end(text),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  project.provide("bundleUrl", `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  return () => server.close();
}
