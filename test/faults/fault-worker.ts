/** The Worker with faults, and the environment whose tools have effects: one bundle for every plan. */
import { join } from "node:path";
import { bundleWorkerWith } from "../../src/local/bundle.ts";
import { environmentPackage } from "../../src/local/environment-package.ts";
import type { PlatformOptions } from "../../src/local/platform.ts";

const ROOT = join(import.meta.dirname, "../..");

export function faultWorker() {
  return {
    environments: [environmentPackage(join(import.meta.dirname, "errands"))],
    worker: {
      entry: join(import.meta.dirname, "worker.ts"),
      folder: join(ROOT, "dist", "faults"),
    },
  } satisfies Partial<PlatformOptions>;
}

/** Makes the bundle before several platforms need it at once. */
export async function bundleFaultWorker(): Promise<void> {
  const { environments, worker } = faultWorker();
  await bundleWorkerWith(ROOT, { environments, ...worker });
}
