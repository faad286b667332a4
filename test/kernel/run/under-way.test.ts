/** How many rollouts of a run an upgrade would interrupt, which a drain waits for. */
import { expect, test, vi } from "vitest";
import * as z from "zod";
import { dataset, defineEnvironment, SingleTurnEnv } from "../../../src/core/entry.ts";
import type { RunRpc } from "../../../src/kernel/messages/rpc.ts";
import { WAIT } from "../../hang-limits.ts";
import { openPlatform, release, requestsOf, rolloutAt } from "../platform.ts";
import { registerOnce } from "../registered.ts";
import { script } from "../script.ts";

const contest = defineEnvironment({
  args: z.strictObject({}),
  build: () =>
    new SingleTurnEnv({
      dataset: dataset(z.object({ question: z.string() }), "uploaded"),
      rubric: { groupRewards: { first: (group) => group.map(() => 1) } },
    }),
});

test("members of a group of which others have not started are not under way", async () => {
  const { args, needs, load } = contest;
  registerOnce({ id: "contest", version: "1.0.0", digest: "sha256:contest", args, needs, load });
  const platform = await openPlatform();
  const model = script(["mine"], undefined, { held: true });
  const { id } = await platform.start({
    ...{ environment: "contest", dataset: [{ question: "who?" }], model },
    ...{ rollouts_per_example: 4, max_concurrent: 3 },
  });
  const underWay = () => (platform.runStub(id) as unknown as RunRpc).underWay();
  await requestsOf(model, 3);
  expect(await underWay()).toBe(3);
  expect((await platform.post(`/v1/runs/${id}/pause`, {})).status).toBe(200);
  for (const slot of [0, 1, 2]) await release(`${rolloutAt(id, 0, slot)}:0`);
  await vi.waitUntil(async () => (await underWay()) === 0, WAIT);
  expect((await platform.run(id)).counts).toMatchObject({ pending: 1, in_flight: 3, scored: 0 });
  expect((await platform.post(`/v1/runs/${id}/resume`, {})).status).toBe(200);
  await requestsOf(model, 4);
  expect(await underWay()).toBe(1);
  await release(`${rolloutAt(id, 0, 3)}:0`);
  expect((await platform.ended(id)).counts).toMatchObject({ in_flight: 0, scored: 4 });
  expect(await underWay()).toBe(0);
});
