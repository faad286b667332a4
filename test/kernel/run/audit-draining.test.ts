/** A cancelled run that does not end: the audit names it once its rollouts have had their time. */
import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import * as z from "zod";
import { dataset, defineEnvironment, ToolEnv } from "../../../src/core/entry.ts";
import { auditRun } from "../../../src/kernel/service/audit-run.ts";
import { openPlatform, requestsOf, rolloutAt, type TestApi } from "../platform.ts";
import { registerOnce } from "../registered.ts";
import { script } from "../script.ts";

const closing = Promise.withResolvers<void>();
const clinging = defineEnvironment({
  args: z.strictObject({}),
  build: () =>
    new ToolEnv({
      dataset: dataset(z.object({ question: z.string() }), [{ question: "Well?" }]),
      tools: [],
      cleanup: { cling: () => closing.promise },
      rubric: { rewards: { one: () => 1 } },
    }),
});

let platform: TestApi;
beforeAll(async () => {
  platform = await openPlatform();
  const { args, needs, load } = clinging;
  registerOnce({ id: "clinging", version: "1.0.0", digest: "sha256:c", args, needs, load });
});

const MINUTE = 60_000;

test("a cancelled run that still drains after its deadlines violates the audit, which names what it waits for", async () => {
  const model = script([{ fault: { kind: "hang" } }]);
  const limits = { call_timeout_s: 60, cleanup_timeout_s: 600 };
  const asked = { environment: "clinging", model, num_examples: 1, limits };
  const { id } = await platform.start(asked);
  await requestsOf(model, 1);
  await platform.post(`/v1/runs/${id}/cancel`, {});
  const auditIn = async (minutes: number) => {
    const found = await auditRun(env, platform.scope, id, Date.now() + minutes * MINUTE);
    return found.ok ? found.value : null;
  };
  expect(await auditIn(24)).toMatchObject({ holds: true });
  const detail = expect.stringContaining(`1 rollouts are in flight, ${rolloutAt(id)} first`);
  expect(await auditIn(27)).toMatchObject({
    holds: false,
    violations: [{ rule: "ends_in_time", detail }],
  });
  closing.resolve();
  await platform.ended(id);
  expect(await auditIn(27)).toMatchObject({ holds: true });
});
