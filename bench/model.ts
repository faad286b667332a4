/**
 * The model of a benchmark as a process of its own, so that its CPU is counted apart:
 *   fork("bench/model.ts", [turns, latency in ms])
 * Sends {url} when it listens and answers every message with {requests}, the completions asked for so far.
 */
import { startScriptedModel } from "../test/fakes/scripted-model.ts";
import { modelReply } from "./workload.ts";

const [turns = 1, latencyMs = 0] = process.argv.slice(2).map(Number);

const model = await startScriptedModel({
  latencyMs,
  reply: ({ messages }) => modelReply(turns, messages),
});
process.on("message", () => process.send?.({ requests: model.requests.length }));
// The benchmark is gone, however it ended.
process.once("disconnect", () => process.exit(0));
process.send?.({ url: model.url });
