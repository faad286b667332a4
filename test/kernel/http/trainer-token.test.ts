/** Tokens of trainers, with a clock of the test's own. */
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { TrainerSecrets } from "../../../src/contract/training-view.ts";
import { mintRunId } from "../../../src/core/ids.ts";
import { databaseOf } from "../../../src/kernel/db/database.ts";
import { insertRun } from "../../../src/kernel/db/runs.ts";
import { minting } from "../../../src/kernel/kit/secrets.ts";
import { rotateTrainerToken } from "../../../src/kernel/service/ask-trainer.ts";
import { issueToken } from "../../../src/kernel/service/issue-token.ts";
import { admit } from "../../accounts/admit.ts";
import { endpointRow, runRow } from "./run-rows.ts";
import { openTestApi } from "./test-api.ts";

const MINUTE = 60_000;
const WEIGHTS = {
  ...{ published: 0, epoch: 0, generation: 0, versions: [] },
  applied: { min: 0, max: 0, by_replica: {} },
};

test("a replaced token works for an hour more, the new one from the start", async () => {
  const api = await openTestApi({
    rotateTrainerToken,
    readWeightVersions: async () => ({ ok: true, value: WEIGHTS }),
  });
  const { scope, clock } = api;
  const id = mintRunId(minting(env, clock.now));
  const endpoint = endpointRow();
  const run = runRow(endpoint, { id, kind: "training", status: "running" });
  await insertRun(databaseOf(env), scope, run, endpoint);
  const first = await issueToken(env, scope, id, clock.now, clock.now);
  const statusOf = async (token: string) => {
    const headers = { authorization: `Bearer ${token}` };
    return (await api.ask(`/v1/runs/${id}/weight-versions`, { headers })).status;
  };
  expect(await statusOf(first)).toBe(200);
  const reply = await api.post(`/v1/runs/${id}/trainer/token`, {});
  const { token, push_secret } = TrainerSecrets.parse(await reply.json());
  expect([token === first, push_secret]).toEqual([false, null]);
  clock.now += 59 * MINUTE;
  expect([await statusOf(first), await statusOf(token)]).toEqual([200, 200]);
  clock.now += MINUTE;
  expect([await statusOf(first), await statusOf(token)]).toEqual([401, 200]);
  // A leaked token can be ended at once, and of the earlier ones nothing stays.
  const again = await api.post(`/v1/runs/${id}/trainer/token?overlap_s=0`, {});
  const last = TrainerSecrets.parse(await again.json()).token;
  clock.now += 5000;
  expect([await statusOf(token), await statusOf(last)]).toEqual([401, 200]);
  const kept = await env.DB.prepare("select count(*) as kept from trainer_tokens where run_id = ?")
    .bind(id)
    .first("kept");
  expect(kept).toBe(2);
});

test("an engine may report what it serves, but not that new weights are published", async () => {
  const reported: unknown[] = [];
  const api = await openTestApi({
    readWeightVersions: async () => ({ ok: true, value: { ...WEIGHTS, published: 3 } }),
    askTrainer: async (...args: readonly unknown[]) => {
      reported.push(args);
      return { ok: false, error: { code: "conflict", message: "said before", param: null } };
    },
  });
  const headers = { authorization: `Bearer ${await admit(api.scope, { scopes: ["engine"] })}` };
  const report = async (body: object) => {
    const reply = await api.post("/v1/runs/run_x/weight-versions", { epoch: 1, ...body }, headers);
    return (await reply.json<{ error: { code: string; param: string | null } }>()).error;
  };
  expect(await report({ version: 3, state: "published" })).toMatchObject({ code: "forbidden", param: "state" });
  expect(await report({ version: 3, state: "applied" })).toMatchObject({ code: "forbidden", param: "replica" });
  const early = { version: 4, state: "applied", replica: "gpu-0" };
  expect(await report(early)).toMatchObject({ code: "version_ahead", param: "version" });
  expect(reported).toEqual([]);
  expect(await report({ ...early, version: 3 })).toMatchObject({ code: "conflict" });
  expect(reported.length).toBe(1);
});
