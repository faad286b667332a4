/** A thread that imports an environment's bundled module, says null or why it is refused, and is ended then. */
import { parentPort, workerData } from "node:worker_threads";
import * as z from "zod";
import { NoEnvironmentPackage } from "./environment-package.ts";
import { importEnvironment } from "./import-environment.ts";

const { entry, file } = z.object({ entry: z.string(), file: z.string() }).parse(workerData);
try {
  await importEnvironment(entry, file);
  parentPort?.postMessage(null);
} catch (thrown) {
  if (!(thrown instanceof NoEnvironmentPackage)) throw thrown;
  parentPort?.postMessage(thrown.message);
}
