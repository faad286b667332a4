/**
 * Runs the policy server alone, to try out settings: `node packages/policy/main.ts --port 8000 --logprobs-mode
 * raw_logprobs --generation-config '{"repetition_penalty": 1.3}'`. Prints its URL, and runs until it is stopped.
 */
import { parseArgs } from "node:util";
import { startPolicyServer } from "./policy-server.ts";
import { ServingOptions } from "./request-schemas.ts";

const { values } = parseArgs({
  options: {
    port: { type: "string", default: "0" },
    "logprobs-mode": { type: "string" },
    "generation-config": { type: "string" },
    "tool-strict-level": { type: "string" },
    "keep-prefix-cache": { type: "boolean" },
  },
});
const { "generation-config": config } = values;
const serving = ServingOptions.parse({
  logprobs_mode: values["logprobs-mode"],
  generation_config: config === undefined || config === "vllm" ? {} : JSON.parse(config),
  tool_strict_level: values["tool-strict-level"],
  keep_prefix_cache: values["keep-prefix-cache"],
});
const { url } = await startPolicyServer({ port: Number(values.port), serving });
process.stdout.write(`${url}\n`);
