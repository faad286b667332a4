/**
 * The policy server's thread: engine and HTTP together, beside the platform's loop. Started by `startPolicyServer`,
 * told its port, its seed and how to serve, and answers with the port it got.
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
