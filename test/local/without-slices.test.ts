/** The platform without its slices: each slice is optional. */
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { bootPlatform, type Platform } from "../../src/local/platform.ts";
import { RollcallClient } from "../../src/sdk/client.ts";
import { type ScriptedModel, startScriptedModel } from "../fakes/scripted-model.ts";

const ROOT = resolve(import.meta.dirname, "../..");
/** The sources of the Worker and the page. */
const COPIED = ["src", "environments", "packages", "migrations", "tsconfig.json", "tsconfig.web.json"];
const WORKER = "test/local/kernel-worker.ts";
const ACCOUNTS = "test/local/one-organization.ts";
/** Objects of slices, by binding and class. */
const OBJECTS = {
  ...{ WEBHOOK: "WebhookObject", TRIGGER: "TriggerObject", PROJECT: "ProjectObject", FLEET: "FleetObject" },
  ...{ REQUESTS: "RequestsObject", AUDIT: "AuditObject", AGENTS: "AgentsObject" },
};

let root: string;
let platform: Platform;
let model: ScriptedModel;

/** The package with a wrangler.toml without any slice's object. */
function rootWithoutSlices(): string {
  const folder = mkdtempSync(join(tmpdir(), "rollcall-kernel-"));
  for (const name of [...COPIED, WORKER, ACCOUNTS]) cpSync(join(ROOT, name), join(folder, name), { recursive: true });
  for (const name of ["node_modules", "package.json"]) symlinkSync(join(ROOT, name), join(folder, name));
  let config = readFileSync(join(ROOT, "wrangler.toml"), "utf8");
  for (const [binding, name] of Object.entries(OBJECTS)) {
    config = config
      .replace(`[[durable_objects.bindings]]\nname = "${binding}"\nclass_name = "${name}"\n`, "")
      .replace(new RegExp(`, "${name}"|"${name}", |"${name}"`), "");
  }
  writeFileSync(join(folder, "wrangler.toml"), config);
  return folder;
}

beforeAll(async () => {
  root = rootWithoutSlices();
  model = await startScriptedModel({ reply: () => "So the answer is \\boxed{4}." });
  const worker = { entry: join(root, WORKER), folder: join(root, "bundle") };
  platform = await bootPlatform({ directory: null, root, worker, log: () => undefined });
});

afterAll(async () => {
  await platform?.stop();
  await model?.stop();
  rmSync(root, { recursive: true, force: true });
});

test("an eval is played and scored, and rescored", async () => {
  const client = new RollcallClient({ baseUrl: platform.url, apiKey: platform.key });
  const dataset = Array.from({ length: 3 }, (_, at) => ({ question: `What is ${at} + 4?`, answer: "#### 4" }));
  const common = { environment: "gsm8k", model: "scripted", endpoint: { base_url: model.url }, dataset };
  const { id } = await client.runs.create(common);
  for await (const _event of client.runs.events(id));
  const run = await client.runs.get(id);
  expect(run).toMatchObject({ status: "completed", counts: { scored: 3 }, report: { reward: { mean: 1 } } });
  const rescored = await client.runs.rescore(id, {});
  for await (const _event of client.runs.events(rescored.id));
  expect(await client.runs.get(rescored.id)).toMatchObject({ status: "completed", counts: { scored: 3 } });
});

test("nothing is charged, and a cap applies with the endpoint's prices", async () => {
  const client = new RollcallClient({ baseUrl: platform.url, apiKey: platform.key });
  const prices = { input_per_mtok_micros: 1_000_000, output_per_mtok_micros: 2_000_000 };
  const capped = {
    ...{ environment: "gsm8k", model: "scripted", endpoint: { base_url: model.url, prices }, min_scored: 0 },
    ...{ sampling: { max_tokens: 100 }, max_concurrent: 2, max_cost_micros: 2500 },
    dataset: Array.from({ length: 40 }, (_, at) => ({ question: `What is ${at} + 4?`, answer: "#### 4" })),
  };
  const { id } = await client.runs.create(capped);
  for await (const _event of client.runs.events(id));
  const { counts, report } = await client.runs.get(id);
  expect(report).toMatchObject({ usage: { charged_micros: 0 } });
  expect(report?.counted_micros).toBeGreaterThan(0);
  expect(report?.counted_micros).toBeLessThanOrEqual(capped.max_cost_micros);
  expect([counts.scored > 0, counts.pending > 0]).toEqual([true, true]);
});

test("a run that names a fleet is refused", async () => {
  const client = new RollcallClient({ baseUrl: platform.url, apiKey: platform.key });
  const dataset = [{ question: "What is 4 + 4?", answer: "#### 8" }];
  const run = client.runs.create({ environment: "gsm8k", model: "scripted", fleet: "trained", dataset });
  await expect(run).rejects.toMatchObject({
    status: 400,
    code: "invalid_request",
    param: "fleet",
    message: expect.stringContaining("this platform has no fleets: name an endpoint"),
  });
});

test("routes of slices are not found, and the API reference does not contain them", async () => {
  const headers = { authorization: `Bearer ${platform.key}` };
  const statusOf = async (path: string) => (await fetch(`${platform.url}${path}`, { headers })).status;
  const paths = [
    ...["/v1/fleets", "/v1/webhook-endpoints", "/v1/triggers", "/v1/deletions", "/v1/shared-report", "/metrics"],
    ...["/v1/prices", "/v1/balance", "/v1/budgets", "/v1/usage"],
    ...["/v1/whoami", "/v1/organization", "/v1/projects", "/v1/keys", "/v1/people", "/v1/audit-log", "/join"],
  ];
  expect(await Promise.all(paths.map(statusOf))).toEqual(paths.map(() => 404));
  const document: { paths: object } = await (await fetch(`${platform.url}/openapi.json`)).json();
  expect(Object.keys(document.paths).filter((path) => paths.includes(path))).toEqual([]);
  expect(await statusOf("/v1/runs")).toBe(200);
});
