/**
 * docs/commands.md against the code: every command has an example, which runs unchanged; so do the commands of
 * docs/ci.md, docs/graded-datasets.md and docs/training-data.md.
 */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { PLATFORM_FLAGS } from "../../src/cli/command-line.ts";
import { makeEnvironment } from "../../src/cli/commands/env-init.ts";
import { COMMANDS, type CommandName, findCommand } from "../../src/cli/commands.ts";
import { keepProfile } from "../../src/cli/profiles.ts";
import { bootPlatform, type Platform } from "../../src/local/platform.ts";
import { RollcallClient } from "../../src/sdk/client.ts";
import { CloudflareStub } from "../cloud/cloudflare-stub.ts";
import { startDeployed } from "../cloud/deployed-stub.ts";
import { type FakeHuggingFace, startHuggingFace } from "../fakes/hugging-face.ts";
import { type ScriptedModel, startScriptedModel } from "../fakes/scripted-model.ts";
import { TEST_HANGS_MS } from "../hang-limits.ts";
import { configFor } from "../local/deployable.ts";
import { testPort } from "../local/test-port.ts";
import { HUB_EXPECTED } from "./hub-expected.ts";
import { INTERFACES, writeTriggers } from "./interfaces-doc.ts";
import { command as runCommand } from "./run-rollcall.ts";
import { type Printed, SERVING_EXPECTED } from "./serving-expected.ts";

const PAGE = readFileSync(join(import.meta.dirname, "../../docs/commands.md"), "utf8");
const AGENTS_PAGE = readFileSync(join(import.meta.dirname, "../../docs/agents.md"), "utf8");
const CI_PAGE = readFileSync(join(import.meta.dirname, "../../docs/ci.md"), "utf8");
const GRADED_PAGE = readFileSync(join(import.meta.dirname, "../../docs/graded-datasets.md"), "utf8");
const TRAINING_PAGE = readFileSync(join(import.meta.dirname, "../../docs/training-data.md"), "utf8");
const ROOT = join(import.meta.dirname, "../..");
const BIN = join(import.meta.dirname, "../../bin/rollcall.mjs");
const LIST = { object: "list", data: expect.any(Array), has_more: expect.any(Boolean) };
const RUN = { object: "run", id: expect.stringMatching(/^run_/), status: "completed" };
const SUMMARY = { run_id: expect.stringMatching(/^run_/), status: "completed" };
const ESTIMATE_OF_16 = { mean: expect.any(Number), se: expect.any(Number), n: 16 };
const DATASET = { object: "dataset", id: expect.stringMatching(/^ds_/), rows: 3 };
const DELETED = { deleted: true };
const A_KEY = { key: expect.stringMatching(/^rk_/) };

/** The output of a command's examples: as text, and as the object of --json. */
const EXPECTED: Partial<Record<CommandName, Printed>> = {
  eval: { text: /^environment +reward[\s\S]*\n\nRewards of \d+ scored rollouts\n/, json: SUMMARY },
  train: {
    json: {
      ...SUMMARY,
      ...{ steps: 2, policy_version: 2, initial_weights: null, before: ESTIMATE_OF_16, after: ESTIMATE_OF_16 },
      ...{ max_lag: expect.any(Number), max_off_policy_steps: 2, batches: { shipped: 2, acked: 2, voided: 0 } },
      rollouts: expect.objectContaining({ unscored: 0, failed: 0 }),
      samples: expect.objectContaining({ untrainable: 0 }),
      first_step: { ratio_max_abs_error: expect.closeTo(0, 4), kl: expect.closeTo(0, 6) },
      reward_by_step: [
        [1, expect.any(Number)],
        [2, expect.any(Number)],
      ],
    },
  },
  compare: {
    text: /^run +run_\w+ +calculator[\s\S]*\ndifference +0\.000[\s\S]*\nmatched +4 tasks\n/,
    json: { object: "comparison", metric: "right", n_matched: 4, tasks: [] },
  },
  rescore: {
    text: /^environment +reward[\s\S]*\n\nRewards of 4 scored rollouts\n/,
    json: { ...SUMMARY, rescored_from: expect.stringMatching(/^run_/) },
  },
  "run list": { text: /^run +status +environment[\s\S]*\nrun_\w+ +completed/, json: LIST },
  "run show": { text: /^run +run_\w+\n[\s\S]*counts +scored 4\n/, json: RUN },
  "run watch": {
    text: /^environment +reward[\s\S]*\nRewards of/,
    json: { object: "list", data: [expect.objectContaining(SUMMARY)] },
  },
  "run cancel": { json: RUN },
  "run pause": { text: /^run_\w+: completed, 0 in flight, 0 to come, 32 at once\n/ },
  "run resume": { json: RUN },
  "run update": { json: { ...RUN, max_concurrent: 8, name: "renamed" } },
  "run retry": { text: /^run_\w+: completed, 0 in flight/, json: RUN },
  "run release-lost-calls": { text: /^run_\w+: it has no cap\n/, json: RUN },
  "run audit": {
    text: /^record +counts[\s\S]*counters +planned 4, dispatched 4, scored 4\n[\s\S]*run_\w+ is consistent\n/,
    json: { object: "audit", holds: true, violations: [] },
  },
  "run rollouts": {
    text: /^rollout +group +task +status[\s\S]*\n(ro_\w+ +\d +What is \d.*\n?){4}$/,
    json: { ...LIST, matched: 4, searched: null },
  },
  "run results": {
    text: /^(\{"example_id":.*\}\n){4}$/,
    json: { object: "results", rows: 4, file: "rollouts.jsonl" },
  },
  generate: {
    text: /^environment +reward[\s\S]*\n\d rows in sft\.jsonl\n/,
    json: { ...SUMMARY, format: "dpo", rows: 0, file: "dpo.jsonl" },
  },
  "run export": {
    text: /^(\{"messages":.*\}\n)*$/,
    json: { object: "export", format: "verifiers", file: "best.jsonl" },
  },
  "rollout show": {
    text: /^Rollout ro_\w+\noutcome +scored[\s\S]*── Turn 1 [\s\S]*assistant +It is 7\./,
    json: { object: "rollout", outcome: "scored", turns: expect.any(Array) },
  },
  // The run has ended already.
  "agent run": { text: /^$/ },
  "rollout cancel": { json: { object: "rollout", outcome: "scored" } },
  "rollout review": {
    text: /^(rollout +by +mark|rollout +ro_\w+\nby )[\s\S]*key_/,
    json: {},
  },
  "run reviews": { text: /ro_\w+ +key_|rollout +ro_/, json: LIST },
  "run agreement": {
    text: /[\s\S]*1 reviews of 1 rollouts\n$/,
    json: { object: "agreement", reviews: 1, items: expect.any(Array) },
  },
  "rollout fork": { json: { object: "run", forked_from: { turn: 0 }, rollouts_per_example: 2 } },
  "dataset push": { text: /^dataset +ds_\w+\nname +questions\nrows +3\n/, json: DATASET },
  "dataset pull": {
    text: /^dataset +ds_\w+\nname +gsm8k-test\nrows +40\n/,
    json: { object: "pulled", dataset: "hf:openai/gsm8k", config: "main", split: "test", rows: 3, file: "gsm8k.jsonl" },
  },
  "dataset list": { text: /\nds_\w+ +questions +3 /, json: LIST },
  "dataset show": {
    json: { ...DATASET, head: [expect.objectContaining({ index: 0 }), expect.anything()] },
  },
  "dataset delete": { json: DELETED },
  "dataset upload list": { json: LIST },
  "dataset upload delete": { json: DELETED },
  ...SERVING_EXPECTED,
  ...INTERFACES,
  "env list": { text: /\ncalculator +\d/, json: LIST },
  ...HUB_EXPECTED,
  login: { text: /^platform +http[\s\S]*\nscopes +admin\n/, json: { object: "caller", profile: "work" } },
  logout: { text: /^Logged out of http/, json: { revoked: expect.stringMatching(/^key_/) } },
  whoami: { text: /\norganisation +Example Labs \(/, json: { object: "caller", profile: "default" } },
  "org show": { text: /^organisation +Example Labs\n/, json: { object: "organization" } },
  "org update": { json: { object: "organization", name: "Example Labs" } },
  "org export": {
    text: /^projects 1 in everything\n$/,
    json: { object: "organization_export", folder: "once-more", counts: expect.objectContaining({ projects: 1 }) },
  },
  "org create": {
    json: {
      name: "Other Labs",
      limits: expect.objectContaining({ runs_in_flight: 100 }),
      key: expect.objectContaining(A_KEY),
    },
  },
  "org list": { text: /\nExample Labs +org_/, json: LIST },
  "org limits": { json: { limits: expect.objectContaining({ concurrent_rollouts: 50_000, storage_bytes: null }) } },
  "org set": { json: { object: "organization", billing: "postpaid", credit_limit_micros: 100_000_000 } },
  prices: { text: /^prices +2026-11\n[\s\S]*a rollout +\$0\.00006\n/, json: { object: "list" } },
  balance: { text: /^balance +\$0\.00\n/, json: { object: "balance", billing: "postpaid", balance_micros: 0 } },
  "ledger list": { text: /^No entries\.\n/, json: LIST },
  "ledger verify": {
    text: /^ledger +adds up\n/,
    json: { ok: true, organizations: 1, entries: 0, differences: [], undrained: 0, rollouts_checked: 0 },
  },
  "top-up": { json: { object: "posted_entry", entry: { note: "invoice 117" }, balance_micros: 25_000_000 } },
  adjust: { json: { object: "posted_entry", entry: { kind: "correction" }, balance_micros: 24_500_000 } },
  "budget list": { text: /^No budgets\. /, json: LIST },
  "budget create": { json: { object: "budget", target_kind: "project", limit_micros: 20_000_000 } },
  "budget show": { text: /^budget +bud_\w+\n/ },
  "budget set": { json: { object: "budget", limit_micros: 40_000_000 } },
  "budget delete": { json: DELETED },
  "project list": { text: /\nmath +pj_/, json: LIST },
  "project create": { json: { object: "project", name: "art", retention: { runs_days: 30 } } },
  "project show": { text: /^project +art\n/ },
  "project update": { json: { name: "art", retention: { runs_days: null, verdicts_days: 7 } } },
  "project delete": { json: { object: "deletion", kind: "project" } },
  "org delete": { json: { object: "deletion", kind: "organization" } },
  "key list": { text: /\nkey_\w+ +first key +rk_/, json: LIST },
  "key create": { json: { object: "key", name: "ci", key: A_KEY.key, project_id: null } },
  "key show": { text: /^key +key_\w+\nname +shown\n/ },
  "key update": { json: { name: "shown", scopes: ["runs:read"], requests_per_minute: null } },
  "key rotate": { json: { name: "shown", key: A_KEY.key } },
  "key revoke": { json: { object: "key", revoked_at: expect.any(Number) } },
  "invitation create": { json: { object: "invitation", role: "viewer", url: expect.stringMatching(/\/join#rki_/) } },
  "invitation list": { text: /\ninv_\w+ +bob@example\.com +viewer +open until/, json: LIST },
  "invitation delete": { json: DELETED },
  "invitation accept": { text: /^ann@example\.com is developer of Example Labs \(profile ann\)\n$/ },
  "person list": { text: /\nann@example\.com +Ann +developer/, json: LIST },
  "person role": { json: { object: "person", role: "viewer" } },
  "person remove": { json: DELETED },
  "audit-log": { text: /^entry +at +who/, json: LIST },
  usage: { text: /^No usage\.|^(day|hour) +.*charged|^start_time,end_time,/ },
  "statement list": { text: /^No month is closed yet/ },
  "statement show": { text: /^month,account,micros\r?\n/ },
  "run share": {
    text: /^http:\S+\/shared#rkr_\w+\nrl_\w+, until |\nrl_\w+ +key_/,
    json: { object: "report_link", url: expect.stringMatching(/\/shared#rkr_\w+$/) },
  },
  "run unshare": { json: DELETED },
  view: {
    text: /^http:\/\/127\.0\.0\.1:\d+\/sign-in#code=rkc_\w+\n$/,
    json: { object: "page_link", url: expect.stringMatching(/#code=rkc_\w+&to=\/runs\/run_\w+$/) },
  },
  // A shell waits a second for names: on a busy machine there may be none.
  completion: { text: /^# Completes rollcall in bash|^agent\ncalculator\n|^$/ },
};

/** These have their own tests. */
const ELSEWHERE: readonly CommandName[] = [
  "deploy backup",
  "deploy repair",
  "deploy restore",
  "deploy resume",
  "env init",
  "env validate",
  "serve",
  "start",
];

const examples = [...PAGE.matchAll(/```sh\n([\s\S]*?)```/g)]
  .flatMap(([, block = ""]) => block.trim().split("\n"))
  .flatMap((line) => {
    const [name] = findCommand(line.split(" ").slice(1)) ?? [];
    return name !== undefined && EXPECTED[name] ? [{ line, expected: EXPECTED[name], name }] : [];
  });

let platform: Platform;
let cloudflare: Awaited<ReturnType<typeof CloudflareStub.start>>;
let deployed: Awaited<ReturnType<typeof startDeployed>>;
let model: ScriptedModel;
let hub: FakeHuggingFace;
const folder = mkdtempSync(join(tmpdir(), "rollcall-doc-"));
const ids = {
  RUN: "",
  BASELINE: "",
  ROLLOUT: "",
  ORG: "",
  KEY: "",
  INVITATION: "",
  DELETION: "",
  BUDGET: "",
  WEBHOOK: "",
  SOURCE: "",
  LINK: "",
  UPLOAD: "",
};
/** Commands of an organisation of their own, with a key for all of it. */
const ACCOUNTS =
  /^rollcall (login|logout|whoami|org|project|key|person|invitation|audit-log|prices|balance|ledger|top-up|adjust|budget)\b/;
const CONFIG = join(folder, "config.json");

beforeAll(async () => {
  const rows = ["3 + 4", "2 + 5", "1 + 6"].map((sum) => {
    return `{"question":"What is ${sum}?","answer":"#### 7"}\n`;
  });
  writeFileSync(join(folder, "rows.jsonl"), rows.join(""));
  writeFileSync(join(folder, "key.txt"), "a value\n");
  writeFileSync(join(folder, "agent.mjs"), /```js\n([\s\S]*?)```/.exec(AGENTS_PAGE)?.[1] ?? "");
  writeFileSync(join(folder, "wrangler.deploy.toml"), configFor(ROOT));
  // For a sum it calls the tool once.
  const sum = { tool_calls: [{ name: "add", arguments: { a: 3, b: 4 } }] };
  model = await startScriptedModel({
    reply: ({ messages, tools }) => {
      const asked = messages.some(({ role }) => role === "assistant");
      const text = JSON.stringify(messages);
      if (text.includes("Is this polite?")) return '{"reason": "It is.", "verdict": "polite"}';
      if (text.includes("the capital of")) return "Paris";
      return JSON.stringify(tools).includes('"add"') && !asked ? sum : "It is 7. \\boxed{7}";
    },
  });
  const log = (line: string) => process.stderr.write(`${line}\n`);
  hub = await startHuggingFace();
  const sums = readFileSync(join(import.meta.dirname, "../fixtures/tables/sums.snappy.parquet"));
  hub.datasets.set("openai/gsm8k", { converted: { main: { test: [sums] }, socratic: { test: [sums] } } });
  cloudflare = await CloudflareStub.start();
  deployed = await startDeployed(cloudflare.stub, "rollcall-prod");
  platform = await bootPlatform({ directory: null, port: testPort(16), log });
  makeEnvironment("guess-word", "single-turn", folder);
  keepProfile(CONFIG, "other", { platform: platform.url, key: platform.key, project: null });
  await makeOrganization();
  const client = new RollcallClient({ baseUrl: platform.url, apiKey: platform.key });
  ids.UPLOAD = (await client.datasetUploads.create({ name: "unfinished" })).id;
});
afterAll(async () => {
  await platform.stop();
  await Promise.all([model, hub, deployed, cloudflare].map(({ stop }) => stop()));
  rmSync(folder, { recursive: true });
});

async function makeOrganization(): Promise<void> {
  const clientOf = (apiKey: string) => new RollcallClient({ baseUrl: platform.url, apiKey });
  const made = await clientOf(platform.key).organizations.create({ name: "Example Labs", project: "math" });
  const key = made.key.key ?? "";
  const client = clientOf(key);
  const leaving = await client.keys.create({ name: "leaving", scopes: ["admin"] });
  writeTriggers(folder, model.url);
  const shown = await client.keys.create({ name: "shown", scopes: ["runs:write"], requests_per_minute: 60 });
  const invitation = await client.invitations.create({ email: "eve@example.com", role: "viewer" });
  writeFileSync(join(folder, "admin-key.txt"), `${key}\n`);
  keepProfile(CONFIG, "leaving", { platform: platform.url, key: leaving.key ?? "", project: null });
  Object.assign(ids, { ORG: made.id, KEY: shown.id, INVITATION: invitation.id });
}

/**
 * A line of the page: split into words by the shell, or run by the shell if it contains more than a command and its
 * arguments.
 */
async function run(line: string): Promise<{ stdout: string; stderr: string }> {
  // The same server under another name, because a fleet may have each URL only once.
  const other = model.url.replace("127.0.0.1", "localhost");
  const deploys = line.replaceAll("DEPLOYMENT_URL", deployed.url);
  const models = deploys.replaceAll("OTHER_MODEL_URL", other).replaceAll("MODEL_URL", model.url);
  const urls = models.replaceAll("PLATFORM_URL", platform.url);
  const command = urls.replaceAll("-m MODEL", "-m m");
  const byProfile = ACCOUNTS.test(line);
  // A platform that is named by its directory includes the policy, which the embedded trainer trains.
  const named = byProfile || line.startsWith("rollcall train") ? "" : platform.url;
  const env = {
    ...ids,
    ROLLCALL_URL: named,
    ROLLCALL_DIR: platform.directory,
    ROLLCALL_API_KEY: platform.key,
    ROLLCALL_CONFIG: CONFIG,
    ROLLCALL_PROFILE: byProfile ? "default" : "",
    OPENAI_API_KEY: "",
    MODEL_KEY: "sk-a-key-of-some-length-1234",
    HF_ENDPOINT: hub.url,
    XDG_CACHE_HOME: join(folder, "cache"),
    CLOUDFLARE_API_BASE_URL: cloudflare.url,
    CLOUDFLARE_API_TOKEN: "a-token-of-cloudflare",
  };
  if (!/^rollcall [^<>|&;\n]+$/.test(command)) {
    return await inShell(`rollcall() { "${process.execPath}" "${BIN}" "$@"; }\n${command}`, env);
  }
  const words = await inShell(command.replace(/^rollcall/, "printf '%s\\0'"), env);
  const argv = words.stdout.split("\0").slice(0, -1);
  const { code, stdout, stderr } = await runCommand(argv, { env, cwd: folder });
  if (code !== 0) throw new Error(`${line}: ${code}\n${stdout}${stderr}`);
  return { stdout, stderr };
}

function inShell(script: string, env: Readonly<Record<string, string>>): Promise<{ stdout: string; stderr: string }> {
  return new Promise((resolve, reject) => {
    execFile("bash", ["-c", script], { cwd: folder, env: { ...process.env, ...env } }, (error, stdout, stderr) => {
      if (error === null) resolve({ stdout, stderr });
      else reject(new Error(`${script}: ${error.code}\n${stdout}${stderr}`));
    });
  });
}

/** Runs an example and checks its output. */
async function play({ line, expected }: (typeof examples)[number]): Promise<void> {
  const { stdout } = await run(line);
  if (!line.includes("--json")) {
    expect(stdout, line).toMatch(expected.text ?? /^$/);
    return;
  }
  expect(stdout.trimEnd().split("\n"), line).toHaveLength(1);
  const printed = JSON.parse(stdout);
  expect(printed, line).toMatchObject(expected.json ?? {});
  if (line.includes("run delete")) ids.DELETION = printed.id;
  if (line.includes("budget create")) ids.BUDGET = printed.id;
  if (line.includes("webhook create")) ids.WEBHOOK = printed.id;
  if (line.includes("run share")) ids.LINK = printed.id;
  if (line.includes("top-up")) ids.SOURCE = printed.entry.source_id;
  if (!line.includes("--name nightly")) return;
  ids.RUN = printed.run_id;
  const { stdout: rows } = await run("rollcall run results $RUN");
  ids.ROLLOUT = JSON.parse(rows.split("\n")[0] ?? "").rollout_id;
  const { stdout: runs } = await run("rollcall run list --limit 2 --json");
  ids.BASELINE = JSON.parse(runs).data[1].id;
}

test(
  "every example prints what its section shows",
  async () => {
    // In the order of the page; commands that only read may run at once.
    let reading: Promise<void>[] = [];
    for (const example of examples) {
      if (/ (list|show|watch|audit|results|verify)$|^(completion|prices|balance)$/.test(example.name)) {
        reading.push(play(example));
        continue;
      }
      await Promise.all(reading);
      reading = [];
      await play(example);
    }
    await Promise.all(reading);
  },
  2 * TEST_HANGS_MS,
);

test("the commands of docs/ci.md make a baseline and pass their gates against it", async () => {
  const lines = Array.from(CI_PAGE.matchAll(/run: npx --no-install (rollcall eval .*)/g), ([, line]) => line);
  expect(lines).toHaveLength(2);
  const [kept = "", gated = ""] = lines;
  await run(kept);
  const { stdout, stderr } = await run(gated);
  expect(stderr).toMatch(/Baseline run_\w+: the newest completed run of gsm8k with branch=main/);
  expect(stdout).toMatch(/\nfail-under +passed[^\n]*\nbaseline +passed/);
  expect(readFileSync(join(folder, "report.xml"), "utf8")).toContain('<testsuite name="gates"');
});

test("docs/graded-datasets.md goes from rows to a report with curl alone, and its own scorer is called", async () => {
  const [, scorer = ""] = /```js\n([\s\S]*?)```/.exec(GRADED_PAGE) ?? [];
  const [, script = ""] = /```sh\n([\s\S]*?)```/.exec(GRADED_PAGE) ?? [];
  expect(script).not.toContain("rollcall");
  writeFileSync(join(folder, "scorer.mjs"), scorer);
  const port = testPort(17);
  const [, key = ""] = /"value": "(whsec_[^"]+)"/.exec(script) ?? [];
  const env = { ...process.env, SCORER_KEY: key };
  const child = spawn(process.execPath, ["scorer.mjs", String(port)], { cwd: folder, env });
  try {
    await once(child.stdout, "data");
    await run(script.replaceAll("127.0.0.1:9000", `127.0.0.1:${port}`));
    const { report, counts } = JSON.parse(readFileSync(join(folder, "report.json"), "utf8"));
    expect(counts).toMatchObject({ planned: 2, scored: 2 });
    // Paris is right in one of two replies; the judge finds both polite.
    expect(report.reward).toMatchObject({ mean: 0.625, n_tasks: 2 });
    const means = Object.entries(report.metrics).map(([name, of]) => [name, Object(of).mean]);
    expect(Object.fromEntries(means)).toMatchObject({
      ...{ exact: 0.5, close: 0.5, "close.passed": 0.5, manners: 1, mine: 0.5 },
    });
    const rows = readFileSync(join(folder, "rows-for-training.jsonl"), "utf8").trim().split("\n");
    expect(rows.map((row) => JSON.parse(row).reward)).toEqual([1]);
    const stale = { "webhook-id": "a", "webhook-timestamp": "1764000000", "webhook-signature": "v1,a" };
    const reply = await fetch(`http://127.0.0.1:${port}/`, { method: "POST", headers: stale, body: "{}" });
    expect(reply.status).toBe(401);
  } finally {
    child.kill();
  }
});

test("the commands of docs/training-data.md write rows of right answers, and no pairs if all answers are alike", async () => {
  const [, block = ""] = /```sh\n([\s\S]*?)```/.exec(TRAINING_PAGE) ?? [];
  await Promise.all(block.trim().split("\n").map(run));
  const rows = readFileSync(join(folder, "sft.jsonl"), "utf8").trim().split("\n");
  expect(rows.map((row) => JSON.parse(row).messages.at(-1).content)).toEqual(Array(3).fill("It is 7. \\boxed{7}"));
  expect(readFileSync(join(folder, "dpo.jsonl"), "utf8")).toBe("");
});

test("every command has an example", () => {
  const shown = [...examples.map(({ name }) => name), ...ELSEWHERE];
  expect(COMMANDS.map(({ name }) => name).filter((name) => !shown.includes(name))).toEqual([]);
});

test("a section names no flag that its commands do not take", () => {
  const sections = PAGE.split(/\n## /).filter((section) => /^(rollcall|npm start\n)/.test(section));
  expect(sections.length).toBeGreaterThan(25);
  for (const section of sections) {
    const named = COMMANDS.filter(({ name }) =>
      section.includes(name === "start" ? "npm start\n" : `rollcall ${name}`),
    );
    const known = [PLATFORM_FLAGS, ...named.map(({ flags }) => flags)].flatMap((flags) => Object.keys(flags));
    const written = Array.from(section.matchAll(/--([a-z][a-z-]*)/g), ([, flag = ""]) => flag);
    const unknown = written.filter((flag) => !known.includes(flag) && flag !== "help");
    expect(unknown, section.split("\n", 1)[0]).toEqual([]);
  }
});
