/** The smoke run of `rollcall deploy` on the Worker in a real workerd; Cloudflare's API is a stub. */
import { expect, test, vi } from "vitest";
import { playSmokeRun } from "../../src/cli/deploy/smoke-run.ts";
import { queueOfShard, SHARDS, shardOf } from "../../src/core/run-queues.ts";
import { TEST_HANGS_MS, WAIT } from "../hang-limits.ts";
import { openDeployed } from "./deployed-worker.ts";
import { startWorker, type WorkerPlatform } from "./worker-platform.ts";

const SECRET = "5a".repeat(32);

async function projectsOf(client: ReturnType<WorkerPlatform["client"]>): Promise<string[]> {
  return (await client.projects.list()).data.map(({ name }) => name);
}

test("a deploy plays a smoke run and leaves nothing of it", { timeout: TEST_HANGS_MS }, async () => {
  const { platform, client, deploy } = await openDeployed(SECRET);
  const made = await deploy("--json");
  expect([made.code, made.stderr]).toEqual([0, expect.stringContaining("playing a smoke run of 4 rollouts")]);
  expect(JSON.parse(made.stdout)).toMatchObject({ smoke: "good", findings: [{ level: "warning" }] });
  expect(await projectsOf(client)).toEqual(["default"]);
  expect(platform.said).toEqual([]);
  const without = await deploy("--no-smoke", "--json");
  expect([without.code, JSON.parse(without.stdout)]).toMatchObject([0, { smoke: "skipped" }]);
});

const CUTS = ["POST /v1/projects", "POST /v1/runs", "DELETE /v1/projects"];

test("a smoke run that is cut off after any change is played again, and leaves nothing", {
  timeout: TEST_HANGS_MS,
}, async () => {
  const platform = await startWorker(SECRET);
  const key = await platform.found();
  const late = new AbortController().signal;
  const play = (signal: AbortSignal) =>
    playSmokeRun({ url: platform.url, key, worker: "w", queue_prefix: "w-", late }, { signal, log: () => undefined });
  for (const cut of CUTS) {
    const killed = new AbortController();
    platform.afterEffect = async (request) => {
      if (request.startsWith(cut)) killed.abort();
    };
    await expect(play(killed.signal), cut).rejects.toThrow("aborted");
    platform.afterEffect = async () => undefined;
    expect(await play(new AbortController().signal), cut).toEqual({ outcome: "good", findings: [] });
    expect(await projectsOf(platform.client(key)), cut).toEqual(["default"]);
  }
  const changes = platform.seen.flatMap((request) => /^(POST|DELETE) .v1.(projects|runs)/.exec(request)?.[0] ?? []);
  expect([...new Set(changes)].sort()).toEqual(CUTS.toSorted());
});

test("a smoke run whose rollouts fail is an error that names them, and stays for inspection until the next one", {
  timeout: TEST_HANGS_MS,
}, async () => {
  const platform = await startWorker(SECRET);
  const key = await platform.found();
  const asked = { key, worker: "rollcall-prod", queue_prefix: "rollcall-prod-", late: new AbortController().signal };
  const around = { signal: new AbortController().signal, log: () => undefined };
  // The Worker itself finds nothing at this address, as behind a proxy.
  platform.answerStrangely = (request) => request.startsWith("POST /operator/smoke");
  const { outcome, findings } = await playSmokeRun({ ...asked, url: platform.url }, around);
  expect([outcome, findings]).toEqual([
    "bad",
    [{ level: "error", what: expect.any(String), fix: expect.stringContaining(`its own address, ${platform.url}`) }],
  ]);
  expect(findings[0]?.what).toMatch(
    /^the smoke run run_\w+ is (completed|failed): (ro_\w+ failed: provider: .*; ){3}ro_\w+ failed: provider: .*/,
  );
  expect(await projectsOf(platform.client(key))).toContain("deploy-smoke");
  platform.answerStrangely = () => false;
  const good = { outcome: "good", findings: [] };
  expect(await playSmokeRun({ ...asked, url: platform.url }, around)).toEqual(good);
  expect(await projectsOf(platform.client(key))).toEqual(["default"]);
});

test.for([
  ["rollout-groups", /4 of 4 rollouts \(ro_.*\) were dispatched and not started/],
  ["rollout-scores", /2 of 4 rollouts \(ro_.*\) wait for scores/],
  ["run-segments", /its rollouts are scored, but not compacted in R2/],
] as const)(
  "the queue %s that delivers nothing is named once the time is up",
  {
    timeout: TEST_HANGS_MS,
  },
  async ([queue, what]) => {
    const queues = Array.from({ length: SHARDS }, (_, shard) => queueOfShard(queue, shard));
    const platform = await startWorker(SECRET, queues);
    const key = await platform.found();
    const late = new AbortController();
    const asked = { url: platform.url, key, worker: "rollcall-prod", queue_prefix: "rollcall-prod-" };
    const playing = playSmokeRun(
      { ...asked, late: late.signal },
      { signal: new AbortController().signal, log: () => undefined },
    );
    const client = platform.client(key, "deploy-smoke");
    await vi.waitUntil(async () => {
      const [run] = await client.runs.list().then(
        ({ data }) => data,
        () => [],
      );
      if (run === undefined) return false;
      const { status, counts } = await client.runs.get(run.id);
      if (queue === "rollout-groups") return counts.dispatched === 4;
      if (queue === "rollout-scores") {
        const { data } = await client.rollouts.list(run.id, { filter: "status:scoring" });
        return counts.scored === 2 && data.length === 2;
      }
      return status === "completed";
    }, WAIT);
    late.abort();
    const { data } = await client.runs.list();
    const shard = queue === "run-segments" ? 0 : shardOf(data[0]?.id ?? "");
    expect(await playing).toEqual({
      outcome: "bad",
      findings: [
        {
          level: "error",
          what: expect.stringMatching(what),
          fix: expect.stringContaining(
            `wrangler queues info rollcall-prod-${queueOfShard(queue, shard)} must show rollcall-prod`,
          ),
        },
      ],
    });
  },
);

test("a key that may not create projects plays nothing and is only a warning", {
  timeout: TEST_HANGS_MS,
}, async () => {
  const platform = await startWorker(SECRET);
  const founder = platform.client(await platform.found());
  const { key } = await founder.keys.create({ name: "evals", project: "default", scopes: ["runs:write"] });
  const asked = { url: platform.url, key: key ?? "", worker: "w", queue_prefix: "w-" };
  const around = { signal: new AbortController().signal, log: () => undefined };
  const { outcome, findings } = await playSmokeRun({ ...asked, late: new AbortController().signal }, around);
  expect([outcome, findings]).toEqual(["skipped", [expect.objectContaining({ level: "warning" })]]);
});

test("a project of the same name that has other runs is left alone", { timeout: TEST_HANGS_MS }, async () => {
  const platform = await startWorker(SECRET);
  const key = await platform.found();
  const founder = platform.client(key);
  await founder.projects.create({ name: "deploy-smoke" });
  const client = platform.client(key, "deploy-smoke");
  const endpoint = { base_url: `${platform.url}/operator/smoke/v1` };
  const own = await client.runs.create({ environment: "reverse-text", model: "any", endpoint, num_examples: 1 });
  const asked = { url: platform.url, key, worker: "w", queue_prefix: "w-", late: new AbortController().signal };
  const around = { signal: new AbortController().signal, log: () => undefined };
  const { outcome, findings } = await playSmokeRun(asked, around);
  expect([outcome, findings]).toEqual([
    "skipped",
    [expect.objectContaining({ level: "warning", what: expect.stringContaining("deploy-smoke has other runs") })],
  ]);
  for await (const _ of client.runs.events(own.id, { signal: AbortSignal.timeout(WAIT.timeout) }));
  expect((await client.runs.get(own.id)).counts.scored).toBe(1);
});
