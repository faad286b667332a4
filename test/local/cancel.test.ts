/** Cancels 1,000 rollouts in flight, on a separate platform, with a model whose every answer leads to another turn. */
import { rmSync } from "node:fs";
import { expect, test } from "vitest";
import { makeThrowAwayDirectory } from "../../src/local/state-directory.ts";
import { RollcallClient } from "../../src/sdk/client.ts";
import { startScriptedModel } from "../fakes/scripted-model.ts";
import { WAIT_HANGS_MS } from "../hang-limits.ts";
import { deathOf, endGroup, serve, until } from "./served-platform.ts";
import { testPort } from "./test-port.ts";

const ROLLOUTS = 1000;
/** Two hundred rollouts make their next call in each second. */
const LATENCY_MS = 5000;

test("1,000 rollouts in flight start no model call once their run was cancelled", async () => {
  const guess = { tool_calls: [{ name: "guess", arguments: { number: 0 } }] };
  const model = await startScriptedModel({ reply: () => guess, latencyMs: LATENCY_MS });
  const directory = makeThrowAwayDirectory();
  const served = await serve(directory, testPort(47));
  const client = new RollcallClient({ baseUrl: served.url, apiKey: served.key });
  try {
    const run = await client.runs.create({
      environment: "guess-number",
      environment_args: { max: 1_000_000, max_turns: 1000 },
      model: "m",
      endpoint: { base_url: model.url },
      num_examples: ROLLOUTS,
      max_concurrent: ROLLOUTS,
    });
    // All rollouts have started, and some have an answer to count.
    const begun = () => new Set(model.requests.map((r) => r.idempotency_key?.split(":")[0])).size;
    await until(() => model.requests.length > ROLLOUTS + 100 && begun() === ROLLOUTS, WAIT_HANGS_MS);
    await client.runs.cancel(run.id);
    for await (const { event } of client.runs.events(run.id)) if (event === "run.cancelled") break;
    const asked = model.requests.length;
    const { counts, report } = await client.runs.get(run.id);
    expect(counts).toMatchObject({ in_flight: 0, cancelled: { user: ROLLOUTS } });
    // Answered turns are in the final reports, with their cost.
    expect(report.turns).toBeGreaterThanOrEqual(model.requests.length - ROLLOUTS);
    expect(report.usage.total_tokens).toBeGreaterThan(0);
    expect(model.requests).toHaveLength(asked);
  } finally {
    endGroup(served);
    await deathOf(served.workerd);
    await model.stop();
    rmSync(directory, { recursive: true, force: true });
  }
});
