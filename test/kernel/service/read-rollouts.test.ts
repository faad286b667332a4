/** Reads one rollout while its trajectory is moved, with the real stores and a lookup that comes too early. */
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { LIMITS } from "../../../src/contract/limits.ts";
import { runObject } from "../../../src/kernel/kit/names.ts";
import { finishedTrajectory } from "../../../src/kernel/service/read-rollouts.ts";
import { segmentLines } from "../hand-made.ts";
import { openPlatform } from "../platform.ts";
import { RIGHT } from "../rows.ts";
import { script } from "../script.ts";

test("a trajectory that is moved into a segment between the lookup and the read of its own file is read from the segment", async () => {
  const api = await openPlatform();
  const dataset = [{ question: "long ".repeat(LIMITS.inlineTrajectoryBytes / 4), answer: "#### 4" }];
  const { id } = await api.finish({ environment: "gsm8k", dataset, model: script(RIGHT) });
  const run = runObject(env, api.scope, id);
  await segmentLines(api, id);
  const page = await run.finished(0, 1, null);
  const [record] = page?.rows ?? [];
  if (record === undefined) throw new Error("no rollout has ended");
  expect(record.text).toBeNull();
  let looks = 0;
  const late = {
    segmentOf: async (seq: number) => {
      looks += 1;
      return looks === 1 ? null : await run.segmentOf(seq);
    },
  };
  const found = await finishedTrajectory(env, { scope: api.scope, run_id: id }, record, late);
  expect(found?.turns).toHaveLength(1);
});
