/** `rollcall eval` and `rollcall serve` with a user's own environment: which platform plays it. */
import {
  appendFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { bundleWorkerWith } from "../../src/local/bundle.ts";
import { LoadRefusal } from "../../src/local/control.ts";
import { resolveEnvironmentPackage } from "../../src/local/environment-package.ts";
import { PACKAGE_ROOT } from "../../src/local/package-root.ts";
import { bootPlatform, type Platform } from "../../src/local/platform.ts";
import { readReadyFile, writeReadyFile } from "../../src/local/state-directory.ts";
import { RollcallClient } from "../../src/sdk/client.ts";
import { type CommandResult, command, rollcall } from "../cli/run-rollcall.ts";
import { startScriptedModel } from "../fakes/scripted-model.ts";
import { WAIT_HANGS_MS } from "../hang-limits.ts";
import { until } from "./served-platform.ts";
import { testPort } from "./test-port.ts";

const TEMPLATE = resolve(import.meta.dirname, "../../src/cli/templates/single-turn");
const base = mkdtempSync(join(tmpdir(), "rollcall-own-"));
/** A state directory that is used with two versions of an environment, and the run that the first version played. */
const kept = join(base, "kept");
let played = "";
let platform: Platform;

function writeEnvironment(id: string, version = "0.1.0"): void {
  const folder = join(base, id);
  const rollcall = { environment: "./environment.ts" };
  cpSync(TEMPLATE, folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: id, version, rollcall }));
}

beforeAll(async () => {
  writeEnvironment("letters");
  platform = await bootPlatform({
    directory: null,
    environments: [resolveEnvironmentPackage("./letters", base)],
    port: testPort(30),
    log: (line) => process.stderr.write(`${line}\n`),
  });
});

afterAll(async () => {
  await platform.stop();
  rmSync(base, { recursive: true });
});

function play(named: string, flags: readonly string[] = [], env: Record<string, string> = {}) {
  const argv = ["eval", named, "--force", "-n", "2", "--json", ...flags];
  return command(argv, { env: { ROLLCALL_DIR: platform.directory, ...env }, cwd: base });
}

/** In a process of its own, so that two play at once. */
function playApart(named: string) {
  return rollcall(
    ["eval", named, "--force", "-n", "2", "--json"],
    { ROLLCALL_DIR: platform.directory },
    undefined,
    base,
  );
}

function client() {
  return new RollcallClient({ baseUrl: platform.url, apiKey: platform.key });
}

async function slowModel() {
  const model = await startScriptedModel({ reply: () => "It is 7.", latencyMs: 300 });
  onTestFinished(() => model.stop());
  return { model };
}

function json({ stdout, stderr }: CommandResult) {
  expect(stdout, stderr).toMatch(/^\{.*\}\n$/);
  return JSON.parse(stdout);
}

test("a running platform with the same code plays it", async () => {
  const result = await play("./letters");
  expect(json(result)).toMatchObject({ status: "completed", environment: "letters@0.1.0" });
  expect(result.stderr).toContain(`on ${platform.url}`);
});

test("a running platform loads other code of a folder, and continues the runs of others", async () => {
  const { model } = await slowModel();
  const flags = ["-m", "m", "-b", model.url, "-n", "6", "-c", "2", "--json"];
  const other = command(["eval", "calculator", ...flags], { env: { ROLLCALL_DIR: platform.directory } });
  await until(() => model.requests.length > 0, WAIT_HANGS_MS);
  appendFileSync(join(base, "letters/environment.ts"), "// edited\n");
  const result = await playApart("./letters");
  expect(json(result)).toMatchObject({ status: "completed", environment: "letters@0.1.0" });
  expect(result.stderr).toContain(`Loaded letters from ${realpathSync(join(base, "letters"))} into the platform at`);
  expect(result.stderr).toContain("unfinished runs of its earlier code end as environment_changed");
  expect(result.stderr).toContain(`on ${platform.url}\n`);
  expect(json(await other)).toMatchObject({ status: "completed", counts: { scored: 6 } });
});

test("commands that load two new folders at once are played by the same platform, and a later one loads nothing", async () => {
  writeEnvironment("nouns");
  writeEnvironment("verbs");
  const both = await Promise.all([playApart("./nouns"), playApart("./verbs")]);
  for (const result of both) {
    expect(json(result)).toMatchObject({ status: "completed" });
    expect(result.stderr).toContain(`on ${platform.url}\n`);
  }
  const again = await play("./nouns");
  expect([json(again).status, again.stderr]).toEqual(["completed", expect.not.stringContaining("Loaded")]);
  const { data } = await client().environments.list();
  expect(data.map(({ id }) => id)).toEqual(expect.arrayContaining(["letters", "nouns", "verbs"]));
});

test("a folder that was edited meanwhile is dropped when another one is loaded: no other code runs under its digest", async () => {
  writeEnvironment("edited");
  const { promise: loaded, resolve: open } = Promise.withResolvers<void>();
  const model = await startScriptedModel({
    reply: async () => {
      await loaded;
      return "It is 7.";
    },
  });
  onTestFinished(() => model.stop());
  const flags = ["-m", "m", "-b", model.url, "-n", "3", "-c", "1", "--json"];
  const first = rollcall(["eval", "./edited", ...flags], { ROLLCALL_DIR: platform.directory }, undefined, base);
  await until(() => model.requests.length > 0, WAIT_HANGS_MS);
  appendFileSync(join(base, "edited/environment.ts"), "// edited\n");
  writeEnvironment("adverbs");
  expect(json(await playApart("./adverbs"))).toMatchObject({ status: "completed" });
  open();
  const { failed_by_class } = json(await first);
  expect(failed_by_class.environment_changed).toBeGreaterThan(0);
  const { data } = await client().environments.list();
  expect(data.map(({ id }) => id)).toEqual(expect.not.arrayContaining(["edited"]));
});

test("code that does not start is refused with its reason, and the platform continues with what it had", async () => {
  writeEnvironment("broken");
  const before = (await client().environments.list()).data.map(({ digest }) => digest);
  appendFileSync(join(base, "broken/environment.ts"), "export const id = crypto.randomUUID();\n");
  const result = await play("./broken");
  expect([result.code, result.stderr]).toEqual([
    2,
    expect.stringMatching(/cannot be loaded in a Worker: .*global scope/),
  ]);
  expect((await client().environments.list()).data.map(({ digest }) => digest)).toEqual(before);
});

test("the control port needs the platform's key, and names what is wrong with a request", async () => {
  const ready = readReadyFile(platform.directory);
  const ask = async (body: string, key = platform.key, path = "/environments") => {
    const headers = { authorization: `Bearer ${key}` };
    const response = await fetch(`${ready?.control_url}${path}`, { method: "POST", headers, body });
    return [response.status, LoadRefusal.parse(await response.json()).message];
  };
  const folder = JSON.stringify({ folder: join(base, "letters") });
  expect(await ask(folder, "rk_other")).toEqual([401, "the key of the platform is required"]);
  expect(await ask(folder, platform.key, "/elsewhere")).toEqual([404, "no such route"]);
  expect(await ask("{")).toEqual([400, expect.stringContaining("JSON")]);
  expect(await ask(JSON.stringify({ folder: 1 }))).toEqual([400, expect.stringContaining("folder")]);
  expect(await ask(`"${"x".repeat(20_000)}"`)).toEqual([400, expect.stringContaining("the body is longer than")]);
  expect(await ask(JSON.stringify({ folder: join(base, "nowhere") }))).toEqual([
    400,
    expect.stringContaining("does not exist"),
  ]);
});

test("a remote platform with other code of the same version plays that code, and that is reported", async () => {
  const elsewhere = { ROLLCALL_URL: platform.url, ROLLCALL_API_KEY: platform.key };
  const model = ["-m", "m", "-b", platform.policyUrl];
  appendFileSync(join(base, "letters/environment.ts"), "// edited again\n");
  const { stderr } = await play("./letters", model, elsewhere);
  expect(stderr).toContain(
    `The platform at ${platform.url} has other code of letters@0.1.0 than this one, and uses that.`,
  );
});

test("only a platform that was started before Rollcall's own code changed reports that", async () => {
  const said = "was started with other code of Rollcall than this one, and uses that for calculator";
  expect((await play("calculator")).stderr).not.toContain(said);
  const ready = readReadyFile(platform.directory);
  if (ready === null) throw new Error("the platform has no ready file");
  // As if a source had changed since.
  writeReadyFile(platform.directory, { ...ready, build: "0".repeat(64) });
  const other = await play("calculator");
  writeReadyFile(platform.directory, ready);
  expect([other.code, other.stderr]).toEqual([0, expect.stringContaining(said)]);
});

test("--ephemeral starts a separate platform, which reports the port it took instead of a busy one", async () => {
  const taken = new URL(platform.url).port;
  const { stderr } = await play("calculator", ["--ephemeral", "--port", taken]);
  const [, used] = new RegExp(`Port ${taken} is busy; using (\\d+)\\.`).exec(stderr) ?? [];
  expect(stderr).toContain(`on http://127.0.0.1:${used}\n`);
});

/** No packages are installed next to it, and it uses several entry points of zod. */
function writeNumbers(version: string): void {
  writeEnvironment("numbers", version);
  const module = join(base, "numbers/environment.ts");
  writeFileSync(module, readFileSync(module, "utf8").replace('"zod"', '"zod/v4"'));
}

test("without a running platform, the state directory's own plays it on --port, bundled once", async () => {
  writeNumbers("0.1.0");
  const made = () => statSync(join(kept, "worker/index.js")).mtimeMs;
  const port = String(testPort(40));
  const result = await play("./numbers", ["--port", port], { ROLLCALL_DIR: kept });
  expect(json(result)).toMatchObject({ status: "completed" });
  expect(result.stderr).toContain(`on http://127.0.0.1:${port}\n`);
  played = json(result).run_id;
  const first = made();
  await bundleWorkerWith(PACKAGE_ROOT, {
    environments: [resolveEnvironmentPackage("./numbers", base)],
    entry: join(PACKAGE_ROOT, "src/index.ts"),
    folder: join(kept, "worker"),
  });
  expect(made()).toBe(first);
});

test("a run of an old version is rescored by the current version, named or not", async () => {
  writeNumbers("0.2.0");
  const ask = (argv: readonly string[]) => command([...argv, "--json"], { env: { ROLLCALL_DIR: kept }, cwd: base });
  const second = await bootPlatform({
    directory: kept,
    environments: [resolveEnvironmentPackage("./numbers", base)],
    port: testPort(31),
    log: (line) => process.stderr.write(`${line}\n`),
  });
  try {
    const scored = { status: "completed", environment: "numbers@0.2.0" };
    const expected = { ...scored, rescored_from: played };
    expect(json(await ask(["rescore", played]))).toMatchObject(expected);
    const named = await ask(["rescore", played, "--environment", "./numbers"]);
    expect(json(named)).toMatchObject(expected);
  } finally {
    await second.stop();
  }
});

test("one of Rollcall's own environments, named by its folder, is the same environment", async () => {
  const folder = resolve(import.meta.dirname, "../../environments/reverse-text");
  const result = await play(folder);
  expect(json(result)).toMatchObject({ status: "completed" });
  expect(result.stderr).toContain(`on ${platform.url}`);
});

test("an environment cannot get the platform's bindings or variables by an import", async () => {
  writeEnvironment("nosy");
  const module = join(base, "nosy/environment.ts");
  const found = `const { env } = await import(["cloudflare", "workers"].join(":"));
    return Object.keys(env ?? {}).length + Object.keys(process.env).length`;
  const right = "right: ({ parser, completion, answer }) => parser.parseAnswer(completion) === answer";
  const source = readFileSync(module, "utf8");
  expect(source).toContain(right);
  writeFileSync(module, source.replace(right, `found: async () => { ${found}; }`));
  const result = json(await play("./nosy"));
  expect([result.status, result.metrics.found]).toEqual(["completed", { mean: 0, n: 2, se: 0 }]);
});

test("a package whose files for a Worker import the runtime is refused with the file and the import", async () => {
  writeEnvironment("sly");
  const two = join(base, "sly/node_modules/two-faced");
  mkdirSync(two, { recursive: true });
  const exports = { ".": { workerd: "./worker.js", default: "./node.js" } };
  writeFileSync(join(two, "package.json"), JSON.stringify({ name: "two-faced", version: "1.0.0", exports }));
  writeFileSync(join(two, "node.js"), "export const env = {};");
  writeFileSync(join(two, "worker.js"), 'export { env } from "cloudflare:workers";');
  appendFileSync(join(base, "sly/environment.ts"), 'import { env } from "two-faced";\nexport const all = env;\n');
  const bundled = bundleWorkerWith(PACKAGE_ROOT, {
    environments: [resolveEnvironmentPackage("./sly", base)],
    entry: join(PACKAGE_ROOT, "src/index.ts"),
    folder: join(base, "sly-worker"),
  });
  const message = /two-faced\/worker\.js imports "cloudflare:workers": an environment must not import modules of Node/;
  await expect(bundled).rejects.toThrow(message);
});

test("code is not sent to remote platforms", async () => {
  writeEnvironment("elsewhere");
  const result = await play("./elsewhere", ["--platform", platform.url], {
    ROLLCALL_API_KEY: platform.key,
  });
  expect(result.code).toBe(2);
  expect(json(result).error.message).toContain("code is not sent to remote platforms");
});

test("the first Ctrl-C ends a command whose environment computes while it is loaded", async () => {
  writeEnvironment("slow");
  const module = 'process.stderr.write("it computes"); for (;;) {}';
  writeFileSync(join(base, "slow/environment.ts"), module);
  const argv = ["serve", "--ephemeral", "--env", "./slow", "--port", String(testPort(33))];
  const { code, stderr } = await rollcall(
    argv,
    {},
    (said, kill) => {
      if (said.endsWith("it computes")) kill("SIGINT");
    },
    base,
  );
  expect(code, stderr).toBe(130);
  expect(stderr).toContain("interrupted");
});

test("an error in the environment ends with exit 2 and names its file", async () => {
  writeEnvironment("broken");
  appendFileSync(join(base, "broken/environment.ts"), 'import "./nowhere.ts";\n');
  const result = await play("./broken");
  expect(result.code).toBe(2);
  expect(json(result).error.message).toMatch(/broken\/environment\.ts:\d+:7[\s\S]*nowhere\.ts/);
});

test("serve refuses two environments with one name, and one with the name of Rollcall's own", async () => {
  writeEnvironment("calculator");
  writeEnvironment("other/letters");
  const manifest = { name: "letters", version: "0.2.0" };
  writeFileSync(
    join(base, "other/letters/package.json"),
    JSON.stringify({ ...manifest, rollcall: { environment: "./environment.ts" } }),
  );
  const serve = (...names: string[]) => {
    const flags = names.flatMap((name) => ["--env", name]);
    return command(["serve", ...flags, "--json"], { cwd: base });
  };
  const twice = await serve("./letters", "./other/letters");
  expect([twice.code, json(twice).error.message]).toEqual([
    2,
    expect.stringContaining("two environments are called letters"),
  ]);
  // The name alone means Rollcall's own environment, which every platform has, so only the other one is refused.
  const taken = await serve("calculator", "./calculator");
  expect([taken.code, json(taken).error.message]).toEqual([
    2,
    expect.stringContaining("the name of a built-in environment"),
  ]);
});
