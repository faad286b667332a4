/**
 * docs/deploy.md by hand, from its secrets to its first run, on the Worker as deployed: with an empty database, and with
 * the secrets of the page; then a run by the profile that `rollcall deploy` stores. Steps that only Cloudflare can do are
 * left out.
 */
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LogLevel, type Miniflare } from "miniflare";
import { afterAll, beforeAll, expect, test } from "vitest";
import { keepProfile } from "../../src/cli/profiles.ts";
import { bundleWorker } from "../../src/local/bundle.ts";
import { migrate } from "../../src/local/migrate.ts";
import { miniflareOptions, quietMiniflare, StderrLog } from "../../src/local/miniflare.ts";
import { PACKAGE_ROOT } from "../../src/local/package-root.ts";
import { bundlePage } from "../../src/local/page-bundle.ts";
import { NO_DEATHS } from "../../src/local/state-directory.ts";
import { type ScriptedModel, startScriptedModel } from "../fakes/scripted-model.ts";
import { configFor } from "../local/deployable.ts";

/** The page up to the section that a test of its own plays (test/cloud/wrangler-dev.test.ts). */
const [PAGE = ""] = readFileSync(join(PACKAGE_ROOT, "docs/deploy.md"), "utf8").split("\n## wrangler dev\n");
const BIN = join(PACKAGE_ROOT, "bin/rollcall.mjs");
const home = mkdtempSync(join(tmpdir(), "rollcall-deploy-page-"));
let model: ScriptedModel;
let deployed: Miniflare;
let url = "";

/**
 * The code block of the page that contains these words, without the lines that call Cloudflare, and without its
 * placeholders.
 */
function block(words: string): string {
  const blocks = Array.from(PAGE.matchAll(/```sh\n([\s\S]*?)```/g), ([, lines = ""]) => lines);
  const found = blocks.filter((lines) => lines.includes(words));
  expect(found, words).toHaveLength(1);
  const kept = found
    .join("")
    .split("\n")
    .filter((line) => !/^(npx wrangler|export) /.test(line));
  return kept.join("\n").replaceAll("npx rollcall", "rollcall");
}

function run(script: string, env: Readonly<Record<string, string>> = {}): Promise<string> {
  const shell = `rollcall() { "${process.execPath}" "${BIN}" "$@"; }\n${script}`;
  const around = { ...process.env, HOME: home, ROLLCALL_URL: url, ...env };
  return new Promise((resolve, reject) => {
    execFile("bash", ["-ec", shell], { cwd: home, env: around }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else reject(new Error(`${script}: ${error.code}\n${stdout}${stderr}`));
    });
  });
}

beforeAll(async () => {
  model = await startScriptedModel({ reply: () => "It is 7." });
  await run(block("openssl rand"));
  const secrets = readFileSync(join(home, "rollcall.env"), "utf8").trim().split("\n");
  const options = await miniflareOptions({
    root: PACKAGE_ROOT,
    bundle: await bundleWorker(PACKAGE_ROOT),
    page: await bundlePage(PACKAGE_ROOT),
    store: join(home, "store"),
    port: 0,
    // The model of this test runs on this machine.
    bindings: { ...Object.fromEntries(secrets.map((line) => line.split("="))), ALLOW_PRIVATE_ENDPOINTS: "true" },
    lastEnd: async () => NO_DEATHS,
    log: new StderrLog(LogLevel.ERROR),
    onOutput: (line) => process.stderr.write(`${line}\n`),
    onRestart: async () => undefined,
  });
  deployed = quietMiniflare(options);
  url = (await deployed.ready).origin;
  await migrate(await deployed.getD1Database("DB"), join(PACKAGE_ROOT, "migrations"));
  writeFileSync(join(home, "wrangler.toml"), configFor(PACKAGE_ROOT));
});

afterAll(async () => {
  await deployed.dispose();
  await model.stop();
  rmSync(home, { recursive: true });
});

test("an empty deployment creates its first key once, that key creates another, and that one plays a run", async () => {
  const first = JSON.parse(await run(block("/v1/bootstrap")));
  expect(first).toMatchObject({ object: "organization", name: "Example Labs", project: { name: "default" } });
  await expect(run(block("/v1/bootstrap"))).rejects.toThrow('"code":"conflict"');

  const made = JSON.parse(await run(block("/v1/keys"), { FIRST_KEY: first.key.key }));
  expect(made).toMatchObject({ object: "key", name: "evals", project_id: first.project.id });

  const env = { OPENAI_API_KEY: "sk-a-key-of-some-length", ROLLCALL_CONFIG: join(home, "config.json") };
  const lines = block("rollcall deploy check").replace("https://api.openai.com/v1", model.url);
  const said = await run(lines, { ...env, ROLLCALL_API_KEY: made.key });
  expect(said).toContain("! the bootstrap route is still open: /v1/bootstrap says 401 unauthorized");
  expect(said).toContain("ready to deploy, with 1 warnings\n");
  expect(said).toContain("Rewards of 8 scored rollouts\n");

  keepProfile(env.ROLLCALL_CONFIG, "prod", { platform: url, key: first.key.key, project: null });
  const byProfile = await run(block("--profile prod").replace("https://api.openai.com/v1", model.url), env);
  expect(byProfile).toMatch(/^rk_\w+\n[\s\S]*Rewards of 8 scored rollouts\n/);
});
