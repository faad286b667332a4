/** The requests of a trainer's client. */
import { expect, test } from "vitest";
import { readMetrics } from "../../src/core/training/read-metrics.ts";
import { TrainerClient } from "../../src/sdk/trainer-client.ts";

test("a metric that is not finite is sent as a number too large for a double, and everything else unchanged", async () => {
  const sent: string[] = [];
  const client = new TrainerClient({
    baseUrl: "https://rollcall.test",
    runId: "run_1",
    apiKey: "rct_1",
    fetch: async (_input, init) => {
      sent.push(String(init?.body));
      return Response.json({ batch_id: "b", step: 1, next_step: 2, published: 0 });
    },
  });
  const request = { token: "t", epoch: 1, batch_id: "b", sha256: "0", produced_version: 1 };
  const metrics = { loss: Number.NaN, 'a "b"': -Number.POSITIVE_INFINITY, kl: 0.5, gone: null };
  await client.ack("ls_1", { ...request, metrics });
  await client.ack("ls_1", request);
  expect(sent.map((text) => readMetrics(text))).toEqual([
    {
      body: { ...request, metrics: { loss: null, 'a "b"': null, kl: 0.5, gone: null } },
      not_finite: ["loss", 'a "b"'],
    },
    { body: { ...request, metrics: {} }, not_finite: [] },
  ]);
});
