/**
 * The model of a benchmark as its own process, so that its CPU is counted separately:
 *   fork("bench/model.ts", [turns, latency in ms, sigma])
 * It sends {url} when it listens, and answers every message with {requests}, the number of completions so far. With a
 * sigma, the latency is the median of a lognormal; the models of both sides draw the same times in the same order.
 */
import { setTimeout as pause } from "node:timers/promises";
import { seededRandom } from "../src/contract/random.ts";
import { startScriptedModel } from "../test/fakes/scripted-model.ts";
import { modelReply } from "./workload.ts";

const [turns = 1, latencyMs = 0, sigma = 0] = process.argv.slice(2).map(Number);
const random = seededRandom("latency of the bench's model");

/** A lognormal from Box and Muller's normal. */
function drawLatency(): number {
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  return latencyMs * Math.exp(sigma * normal);
}

const model = await startScriptedModel({
  latencyMs: sigma === 0 ? latencyMs : 0,
  reply: async ({ messages, body }) => {
    if (sigma > 0) await pause(drawLatency());
    return modelReply(turns, messages, body["return_token_ids"] === true);
  },
});
process.on("message", () => process.send?.({ requests: model.requests.length }));
// The benchmark has ended, for any reason.
process.once("disconnect", () => process.exit(0));
process.send?.({ url: model.url });
