/**
 * The policy server's thread: engine and HTTP together, off the platform's event loop. `startPolicyServer` starts it
 * with a port, a seed and settings; the thread answers with its actual port.
 */
import { parentPort, workerData } from "node:worker_threads";
import * as z from "zod";
import { Engine } from "./engine.ts";
import { POLICY_MODEL } from "./known-environments.ts";
import { ServingOptions } from "./request-schemas.ts";
import { servePolicy } from "./server.ts";
import { baseWeights } from "./weights.ts";

const Given = z.object({
  port: z.int(),
  seed: z.int().optional(),
  serving: ServingOptions.prefault({}),
});
const { port, seed, serving } = Given.parse(workerData);
const weights = baseWeights();
const engine = new Engine({
  ...{ weights, version: "base", keepPrefixCache: serving.keep_prefix_cache },
  ...(seed !== undefined && { seed }),
});
const context = { engine, model: POLICY_MODEL, serving, now: Date.now };
const listener = await servePolicy(context, port);
parentPort?.postMessage({ port: listener.port });
