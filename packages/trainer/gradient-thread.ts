/** The thread that computes gradients for threaded-gradient.ts. It compiles before it reports that it is ready. */
import { parentPort, workerData } from "node:worker_threads";
import { baseWeights } from "@rollcall/policy/weights";
import { GradientOf, startJax } from "./gradient.ts";
import { LOSSES, type LossName } from "./losses.ts";
import { emptyBatch, FIRST_SHAPE, type RowBatch } from "./row-batch.ts";

/** A request for one gradient. */
export interface GradientAsked {
  readonly weights: Float32Array;
  readonly batches: readonly RowBatch[];
}

const { loss }: { loss: LossName } = workerData;
const gradientOf = new GradientOf(LOSSES[loss]);
await startJax();
await gradientOf.at(baseWeights(), [emptyBatch(FIRST_SHAPE)]);
parentPort?.on("message", async ({ weights, batches }: GradientAsked) => {
  parentPort?.postMessage(await gradientOf.at(weights, batches));
});
parentPort?.postMessage("ready");
