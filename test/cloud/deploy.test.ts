/** `rollcall deploy` with the pinned wrangler, against a stub of Cloudflare. */
import { existsSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { bundleWorker } from "../../src/local/bundle.ts";
import { deploymentConfig, queuesOf, readReleased, withConfig } from "../../src/local/deployment-config.ts";
import { newRecord } from "../../src/local/deployment-file.ts";
import { migrationsIn } from "../../src/local/migrate.ts";
import { PACKAGE_ROOT } from "../../src/local/package-root.ts";
import { bundlePage } from "../../src/local/page-bundle.ts";
import { callWrangler } from "../../src/local/wrangler.ts";
import { TEST_HANGS_MS } from "../hang-limits.ts";
import { openStand, type Stand } from "./stand.ts";

const MIGRATIONS = migrationsIn(join(PACKAGE_ROOT, "migrations"));

/** The key of the profile `prod`. */
function keyOf({ read }: Stand, profile = "prod"): string {
  return JSON.parse(read("config.json")).profiles[profile].key;
}

test("from nothing to a deployment that answers, and the same command upgrades it", {
  timeout: TEST_HANGS_MS,
}, async () => {
  const stand = await openStand();
  const { stub, prod, deploy, rollcall, read, folder } = stand;
  prod.late.times = 1;
  prod.late.closings = 1;
  const first = await deploy("--location", "weur", "--json");
  expect([first.code, first.stderr]).toEqual([0, expect.stringContaining("is not ready: /readyz says 503")]);
  expect(first.stderr).toContain("is still open: /v1/bootstrap says 401");
  expect(JSON.parse(first.stdout)).toMatchObject({
    ...{ name: "prod", url: prod.url, profile: "prod", findings: [], migrated: MIGRATIONS },
    ...{ worker: "rollcall-prod", database: "rollcall-prod", bucket: "rollcall-prod-store" },
  });

  const { workers, queues, databases, buckets } = stub.state();
  expect(workers["rollcall-prod"]).toMatchObject({ secrets: ["ROLLCALL_SECRET"], published: true });
  expect(databases).toMatchObject([
    { name: "rollcall-prod", migrations: MIGRATIONS, made: { primary_location_hint: "weur" } },
  ]);
  expect(buckets).toMatchObject({ "rollcall-prod-store": { made: { locationHint: "weur" } } });
  expect(Object.values(queues).every((consumers) => consumers[0]?.script === "rollcall-prod")).toBe(true);
  expect(Object.keys(queues)).toHaveLength(23);
  const kinds = stub.seen.map(({ kind }) => kind);
  expect(kinds.lastIndexOf("POST /d1/database/*/query")).toBeLessThan(kinds.indexOf("PUT /workers/scripts/*"));

  const secrets = join(folder, "rollcall.prod.secrets.json");
  expect(statSync(secrets).mode & 0o777).toBe(0o600);
  const { ROLLCALL_SECRET: secret, ...others } = JSON.parse(read("rollcall.prod.secrets.json"));
  expect([secret, others]).toEqual([stub.workers.get("rollcall-prod")?.secrets["ROLLCALL_SECRET"], {}]);
  const written = read("rollcall.deploy.toml");
  for (const unseen of [secret, keyOf(stand)]) {
    expect(written + first.stdout + first.stderr).not.toContain(unseen);
  }

  const [before, seen] = [stub.state(), stub.seen.length];
  const again = await deploy("--var", "OTLP_ENDPOINT=https://spans.example.com");
  expect([again.code, again.stderr]).toEqual([0, expect.stringContaining("the database is up to date")]);
  expect(again.stdout).toContain(`page      ${prod.url}\n`);
  const made = stub.seen.slice(seen).map(({ kind }) => kind);
  const creations = ["POST /d1/database", "POST /r2/buckets", "POST /queues"];
  expect(made.filter((kind) => creations.includes(kind))).toEqual([]);
  expect(again.stderr).not.toContain("creating");
  const after = stub.state();
  expect({ ...after, workers: null }).toEqual({ ...before, workers: null });
  expect(after.workers["rollcall-prod"]?.bindings).toContainEqual({
    ...{ type: "plain_text", name: "OTLP_ENDPOINT", text: "https://spans.example.com" },
  });
  expect(read("rollcall.deploy.toml")).toContain('[prod.vars]\nOTLP_ENDPOINT = "https://spans.example.com"\n');

  const status = await rollcall("deploy", "status", "--name", "prod", "--json");
  expect([status.code, JSON.parse(status.stdout)]).toMatchObject([
    0,
    {
      ...{ name: "prod", url: prod.url, readiness: "ready", secrets: ["ROLLCALL_SECRET"] },
      ...{ worker: { name: "rollcall-prod", version: "version-2" }, bucket: { exists: true } },
      ...{ schema: { applied: MIGRATIONS.at(-1), release: MIGRATIONS.at(-1) }, queues: { missing: [] } },
    },
  ]);
  const moved = await deploy("--location", "apac");
  expect([moved.code, moved.stderr]).toEqual([
    2,
    expect.stringContaining("--location: prod is in weur and cannot be moved"),
  ]);
});

test("D1 databases are added to a deployment, migrated with it, never removed, and destroyed with it", {
  timeout: TEST_HANGS_MS,
}, async () => {
  const { stub, deploy, rollcall, read, killAt } = await openStand();
  expect((await deploy()).code).toBe(0);
  killAt(({ kind }) => kind === "POST /d1/database");
  expect((await deploy("--databases", "3")).code).toBe(null);
  const added = await deploy("--databases", "3", "--json");
  expect([added.code, added.stderr]).toEqual([0, expect.stringContaining("to the database rollcall-prod_2")]);
  const ids = JSON.parse(added.stdout).more_database_ids;
  expect(stub.state().databases).toMatchObject([
    { name: "rollcall-prod", migrations: MIGRATIONS },
    { name: "rollcall-prod_1", migrations: MIGRATIONS },
    { name: "rollcall-prod_2", migrations: MIGRATIONS },
  ]);
  const bound = () => stub.state().workers["rollcall-prod"]?.bindings.filter(({ type }) => type === "d1");
  expect(bound()).toMatchObject([{ name: "DB" }, { name: "DB_1" }, { name: "DB_2" }]);
  expect(read("rollcall.deploy.toml")).toContain(`more_database_ids = ${JSON.stringify(ids)}\n`);

  expect((await deploy()).code).toBe(0);
  expect(bound()).toHaveLength(3);
  const fewer = await deploy("--databases", "2");
  expect([fewer.code, fewer.stderr]).toEqual([2, expect.stringContaining("prod has 3, and none can be removed")]);
  const many = await deploy("--databases", "33");
  expect([many.code, many.stderr]).toEqual([2, expect.stringContaining("must be at most 32")]);
  const status = await rollcall("deploy", "status", "--name", "prod", "--json");
  expect(JSON.parse(status.stdout).more_databases).toEqual([
    { name: "rollcall-prod_1", id: ids[0], applied: MIGRATIONS.at(-1) },
    { name: "rollcall-prod_2", id: ids[1], applied: MIGRATIONS.at(-1) },
  ]);
  const destroyed = await rollcall("deploy", "destroy", "--name", "prod", "--yes", "prod", "--data");
  expect([destroyed.code, stub.state().databases]).toEqual([0, []]);
});

test("a preview has a Worker and data of its own, and is deleted without the deployment", {
  timeout: TEST_HANGS_MS,
}, async () => {
  const stand = await openStand();
  const { stub, preview, deploy, rollcall, folder } = stand;
  expect((await deploy("--jurisdiction", "eu")).code).toBe(0);
  const before = stub.state();
  const made = await rollcall("deploy", "--name", "prod", "--preview", "--url", preview.url, "--no-smoke");
  expect([made.code, made.stderr]).toEqual([0, expect.stringContaining("creating 23 queues")]);
  const both = stub.state();
  expect(both.workers["rollcall-prod"]).toEqual(before.workers["rollcall-prod"]);
  expect(both.databases.map(({ name, made }) => [name, made])).toEqual([
    ["rollcall-prod", { name: "rollcall-prod", jurisdiction: "eu" }],
    ["rollcall-prod-preview", { name: "rollcall-prod-preview", jurisdiction: "eu" }],
  ]);
  expect(both.buckets["rollcall-prod-preview-store"]).toMatchObject({ made: { jurisdiction: "eu" } });
  expect(keyOf(stand, "prod-preview")).not.toBe(keyOf(stand));
  const counters = Object.values(both.workers).map(({ bindings }) => bindings.find(({ type }) => type === "ratelimit"));
  expect(new Set(counters.map((counter) => counter?.["namespace_id"])).size).toBe(2);

  const unsure = await rollcall("deploy", "destroy", "--name", "prod", "--preview", "--yes", "prod");
  expect([unsure.code, unsure.stderr]).toEqual([2, expect.stringContaining("--yes prod-preview")]);
  const bucket = stub.buckets.get("rollcall-prod-preview-store");
  if (bucket !== undefined) bucket.objects = 3;
  const destroy = (...words: string[]) =>
    rollcall("deploy", "destroy", "--name", "prod", "--preview", "--yes", "prod-preview", "--json", ...words);
  const full = stub.state();
  const refused = await destroy();
  expect([refused.code, JSON.parse(refused.stdout).error.message]).toEqual([
    1,
    expect.stringContaining("has organisations, and nothing was deleted: --data"),
  ]);
  expect(stub.state()).toEqual(full);
  const emptying = await destroy("--data");
  expect([emptying.code, JSON.parse(emptying.stdout).kept]).toEqual([1, [expect.stringContaining("then repeat")]]);
  expect(bucket?.lifecycle).toMatchObject({ rules: [{ deleteObjectsTransition: { condition: { type: "Age" } } }] });
  if (bucket !== undefined) bucket.objects = 0;
  expect((await destroy("--data")).code).toBe(0);
  expect(stub.state()).toEqual(before);
  expect(existsSync(join(folder, "rollcall.prod-preview.secrets.json"))).toBe(false);
});

test("data is never left without its secret", { timeout: TEST_HANGS_MS }, async () => {
  const { stub, deploy, folder, read } = await openStand();
  expect((await deploy()).code).toBe(0);
  const file = join(folder, "rollcall.prod.secrets.json");
  const secret = stub.workers.get("rollcall-prod")?.secrets["ROLLCALL_SECRET"];
  rmSync(file);
  const elsewhere = await deploy();
  expect([elsewhere.code, elsewhere.stdout]).toEqual([0, expect.stringContaining("secrets   only at Cloudflare")]);
  expect(stub.workers.get("rollcall-prod")?.secrets).toEqual({ ROLLCALL_SECRET: secret });
  stub.workers.delete("rollcall-prod");
  const lost = await deploy();
  expect([lost.code, lost.stderr]).toEqual([
    1,
    expect.stringContaining("has data of an organisation, and the ROLLCALL_SECRET"),
  ]);
  expect([stub.workers.size, existsSync(file)]).toEqual([0, false]);
  expect(read("rollcall.deploy.toml")).toContain("[prod]");
});

test("a platform that does not get ready is an error with its last answer, and the command continues", {
  timeout: TEST_HANGS_MS,
}, async () => {
  const { prod, stub, deploy } = await openStand();
  prod.late.times = 1000;
  const late = await deploy("--wait", "1", "--json");
  expect([late.code, JSON.parse(late.stdout).error.message]).toEqual([
    4,
    expect.stringMatching(/is not ready after 1 s: \/readyz says 503 .*"status":"not_ready"/),
  ]);
  expect(Object.keys(stub.workers.get("rollcall-prod")?.secrets ?? {})).toContain("ROLLCALL_BOOTSTRAP_TOKEN");
  prod.late.times = 0;
  expect((await deploy()).code).toBe(0);
  expect(Object.keys(stub.workers.get("rollcall-prod")?.secrets ?? {})).toEqual(["ROLLCALL_SECRET"]);
});

test("wrangler by itself creates the bucket and every queue, as the button needs it", {
  timeout: TEST_HANGS_MS,
}, async () => {
  const { stub, env } = await openStand();
  const account_id = stub.accounts[0] ?? "";
  stub.databases.set("a-database", { name: "rollcall", sqlite: new DatabaseSync(":memory:"), made: {} });
  const record = { ...newRecord("button"), account_id, database_id: "a-database" };
  const built = {
    bundle: await bundleWorker(PACKAGE_ROOT),
    page: await bundlePage(PACKAGE_ROOT),
    migrations: join(PACKAGE_ROOT, "migrations"),
  };
  const config = deploymentConfig(await readReleased(PACKAGE_ROOT), record, built);
  await withConfig(config, async ({ folder, file }) => {
    writeFileSync(join(folder, "secrets.json"), JSON.stringify({ ROLLCALL_SECRET: "5e".repeat(32) }));
    const words = ["deploy", "--config", file, "--secrets-file", join(folder, "secrets.json")];
    await callWrangler(words, { folder, env });
  });
  expect([...stub.buckets.keys()]).toEqual([record.bucket]);
  expect([...stub.queues.keys()].sort()).toEqual(queuesOf(config));
  expect([...stub.queues.values()].every(({ consumers }) => consumers.length === 1)).toBe(true);
});
