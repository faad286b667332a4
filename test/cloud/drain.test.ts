/** The drain of `rollcall deploy --drain` on the Worker in a real workerd. */
import { expect, onTestFinished, test, vi } from "vitest";
import { OperatorClient } from "../../src/cli/backup/operator-client.ts";
import { drain, resume } from "../../src/cli/deploy/drain.ts";
import { DRAIN_PATH } from "../../src/operator/wire.ts";
import type { RollcallClient } from "../../src/sdk/client.ts";
import { startScriptedModel } from "../fakes/scripted-model.ts";
import { TEST_HANGS_MS, WAIT } from "../hang-limits.ts";
import { openDeployed } from "./deployed-worker.ts";
import { startWorker, type WorkerPlatform } from "./worker-platform.ts";

const SECRET = "d4".repeat(32);
const NEVER = new AbortController().signal;

/** A paying organisation with a run of eight rollouts, of which three are in flight and wait for their model. */
async function openBusy() {
  const platform = await startWorker(SECRET);
  return await makeBusy(platform, platform.client(await platform.found()));
}

async function makeBusy(platform: WorkerPlatform, client: RollcallClient) {
  const { organization } = await client.whoAmI();
  await client.organizations.update(organization.id, { billing: "postpaid" });
  await client.ledger.topUp({ organization: organization.id, amount_micros: 50_000_000 });
  const gate = Promise.withResolvers<void>();
  const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
  const model = await startScriptedModel({
    async reply({ begin }) {
      begin();
      await gate.promise;
      return { content: "olleh", usage };
    },
  });
  onTestFinished(() => model.stop());
  const endpoint = { base_url: model.url, api_key: "a-key-of-the-endpoint" };
  const asked = { environment: "reverse-text", model: "scripted", endpoint, num_examples: 8, max_concurrent: 3 };
  const run = await client.runs.create(asked);
  await vi.waitUntil(() => model.inFlight() === 3, WAIT);
  const operator = new OperatorClient(platform.url, SECRET, NEVER, DRAIN_PATH);
  return { platform, client, answer: gate.resolve, model, asked, run, operator };
}

type Busy = Awaited<ReturnType<typeof openBusy>>;

/** Waits until the runs have ended, each rollout scored and charged once. */
async function expectAllOnce({ client, platform }: Busy, ids: readonly string[]): Promise<void> {
  for (const id of ids) {
    for await (const _ of client.runs.events(id, { signal: AbortSignal.timeout(WAIT.timeout) }));
    expect(await client.runs.get(id)).toMatchObject({ status: "completed", counts: { planned: 8, scored: 8 } });
  }
  const charged = async () => {
    const sources: string[] = [];
    for await (const { kind, run_id, source_id } of client.ledger.list()) {
      if (kind === "rollout" && ids.includes(run_id ?? "")) sources.push(`${source_id}`);
    }
    return sources;
  };
  await vi.waitUntil(async () => (await charged()).length >= 8 * ids.length, WAIT);
  expect([(await charged()).length, new Set(await charged()).size]).toEqual([8 * ids.length, 8 * ids.length]);
  expect((await client.ledger.verify()).ok).toBe(true);
  expect(platform.said).toEqual([]);
}

const readiness = async (url: string): Promise<{ status: string; draining_since: number | null }> =>
  (await fetch(new URL("/readyz", url))).json() as Promise<{ status: string; draining_since: number | null }>;

test("a drain lets rollouts in flight end and starts none, in no run, until it is ended", {
  timeout: TEST_HANGS_MS,
}, async () => {
  const busy = await openBusy();
  const { client, answer, model, asked, run, operator, platform } = busy;
  const said: string[] = [];
  const draining = drain(operator, NEVER, { signal: NEVER, log: (line) => said.push(line) });
  await vi.waitUntil(async () => (await client.runs.get(run.id)).status_reason?.state === "upgrading", WAIT);
  const later = await client.runs.create(asked);
  await vi.waitUntil(async () => (await client.runs.get(later.id)).status_reason?.state === "upgrading", WAIT);
  expect(said).toContain(`draining: 3 rollouts of 1 runs are in flight: ${run.id}`);
  answer();
  await draining;
  expect((await client.runs.get(run.id)).counts).toMatchObject({ planned: 8, pending: 5, in_flight: 0, scored: 3 });
  expect((await client.runs.get(later.id)).counts).toMatchObject({ pending: 8, in_flight: 0 });
  expect((await client.runs.get(later.id)).status_reason).toEqual({
    state: "upgrading",
    reason: "the operator is upgrading the platform: rollouts start again afterwards",
  });
  expect(model.requests.length).toBe(3);
  await resume(operator);
  await expectAllOnce(busy, [run.id, later.id]);
  await vi.waitUntil(async () => (await readiness(platform.url)).draining_since === null, WAIT);
});

test("a run that scores stored trajectories waits for the end of a drain too", { timeout: TEST_HANGS_MS }, async () => {
  const busy = await openBusy();
  const { client, answer, run, operator } = busy;
  answer();
  await expectAllOnce(busy, [run.id]);
  await drain(operator, NEVER, { signal: NEVER, log: () => undefined });
  const rescored = await client.runs.rescore(run.id);
  await vi.waitUntil(async () => (await client.runs.get(rescored.id)).status_reason?.state === "upgrading", WAIT);
  expect((await client.runs.get(rescored.id)).counts).toMatchObject({ pending: 8, dispatched: 0 });
  await resume(operator);
  for await (const _ of client.runs.events(rescored.id, { signal: AbortSignal.timeout(WAIT.timeout) }));
  expect((await client.runs.get(rescored.id)).counts.scored).toBe(8);
});

test("a drain that takes too long says what it waits for, and ends", { timeout: TEST_HANGS_MS }, async () => {
  const { client, answer, run, operator, platform } = await openBusy();
  const late = drain(operator, AbortSignal.abort(), { signal: NEVER, log: () => undefined });
  await expect(late).rejects.toThrow(`3 rollouts of 1 runs are in flight: ${run.id}; rollouts start again`);
  await vi.waitUntil(async () => (await readiness(platform.url)).draining_since === null, WAIT);
  answer();
  for await (const _ of client.runs.events(run.id, { signal: AbortSignal.timeout(WAIT.timeout) }));
  expect((await client.runs.get(run.id)).status).toBe("completed");
});

test("a drain that another command ends is not begun again", { timeout: TEST_HANGS_MS }, async () => {
  const { client, answer, run, operator, platform } = await openBusy();
  const draining = drain(operator, NEVER, { signal: NEVER, log: () => undefined });
  const failed = expect(draining).rejects.toThrow("the drain was ended by another command");
  await vi.waitUntil(async () => (await client.runs.get(run.id)).status_reason?.state === "upgrading", WAIT);
  await resume(operator);
  await failed;
  expect((await readiness(platform.url)).status).toBe("ready");
  answer();
  for await (const _ of client.runs.events(run.id, { signal: AbortSignal.timeout(WAIT.timeout) }));
  expect((await client.runs.get(run.id)).counts.scored).toBe(8);
});

test("only a holder of the secret drains, and its paths do not exist for anybody else", {
  timeout: TEST_HANGS_MS,
}, async () => {
  const platform = await startWorker(SECRET);
  const stranger = new OperatorClient(platform.url, "00".repeat(32), NEVER, DRAIN_PATH);
  await expect(drain(stranger, NEVER, { signal: NEVER, log: () => undefined })).rejects.toThrow(
    `${platform.url} has no /operator/drain for this ROLLCALL_SECRET: its secret is another, or its release is older`,
  );
  expect((await readiness(platform.url)).draining_since).toBe(null);
});

test("an upgrade with --drain that is interrupted or killed is left draining, which is shown, and is finished or ended", {
  timeout: 2 * TEST_HANGS_MS,
}, async () => {
  const deployed = await openDeployed(SECRET);
  const { platform, client, deploy, rollcall, send, killAt } = deployed;
  expect((await deploy("--no-smoke", "--drain")).code).toBe(0);
  const busy = await makeBusy(platform, client);
  const atDrain = (then: () => void) => {
    platform.afterEffect = async (request) => {
      if (request !== "POST /operator/drain") return;
      platform.afterEffect = async () => undefined;
      then();
    };
  };
  atDrain(() => send("SIGINT"));
  const interrupted = await deploy("--drain");
  expect([interrupted.code, interrupted.stderr]).toEqual([130, expect.stringContaining("rollcall deploy resume")]);

  atDrain(busy.answer);
  killAt(({ kind }) => kind === "POST /workers/scripts/*/versions");
  expect((await deploy("--drain")).code).toBe(null);
  const status = await rollcall("deploy", "status", "--name", "prod", "--json");
  expect(JSON.parse(status.stdout)).toMatchObject({ readiness: "ready", draining_since: expect.any(String) });
  const undrained = await deploy("--json");
  expect([undrained.code, JSON.parse(undrained.stdout)]).toMatchObject([
    0,
    {
      smoke: "skipped",
      findings: expect.arrayContaining([
        expect.objectContaining({ level: "warning", fix: "npx rollcall deploy resume --name prod" }),
      ]),
    },
  ]);
  expect((await client.runs.get(busy.run.id)).counts).toMatchObject({ pending: 5, in_flight: 0, scored: 3 });

  const again = await deploy("--drain", "--json");
  expect([again.code, JSON.parse(again.stdout)]).toMatchObject([0, { smoke: "good" }]);
  await expectAllOnce(busy, [busy.run.id]);
  const ended = await rollcall("deploy", "resume", "--name", "prod", "--json");
  expect([ended.code, JSON.parse(ended.stdout)]).toEqual([0, { name: "prod" }]);
});
