/** Environments are published, found, run, compared and copied with commands, against two platforms. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { makeEnvironment } from "../../src/cli/commands/env-init.ts";
import { packEnvironment } from "../../src/cli/hub/pack-environment.ts";
import { unpackFiles } from "../../src/cli/hub/package-files.ts";
import { keepProfile } from "../../src/cli/profiles.ts";
import { CODE_FILE } from "../../src/contract/package-files.ts";
import { packFiles } from "../../src/local/pack-files.ts";
import { bootPlatform, type Platform } from "../../src/local/platform.ts";
import { makeThrowAwayDirectory } from "../../src/local/state-directory.ts";
import { RollcallClient } from "../../src/sdk/client.ts";
import { type ScriptedModel, startScriptedModel } from "../fakes/scripted-model.ts";
import { testPort } from "../local/test-port.ts";
import { type CommandResult, command } from "./run-rollcall.ts";

const folder = makeThrowAwayDirectory();
const config = join(folder, "config.json");
const NAME = "alice/letters";

let first: Platform;
let second: Platform;
let model: ScriptedModel;

beforeAll(async () => {
  model = await startScriptedModel({ reply: () => "\\boxed{3}" });
  const log = (line: string) => process.stderr.write(`${line}\n`);
  first = await bootPlatform({ directory: null, port: testPort(12), log });
  second = await bootPlatform({ directory: null, port: testPort(13), log });
  const operator = new RollcallClient({ baseUrl: first.url, apiKey: first.key });
  for (const name of ["alice", "bob"]) {
    const { key } = (await operator.organizations.create({ name, project: "main" })).key;
    keepProfile(config, name, { platform: first.url, key: key ?? "", project: "main" });
  }
  keepProfile(config, "other", { platform: second.url, key: second.key, project: null });
  makeEnvironment("letters", "single-turn", folder);
});
afterAll(async () => {
  await Promise.all([first, second, model].map((started) => started.stop()));
  rmSync(folder, { recursive: true });
});

/** A command of a profile. */
async function as(profile: string, ...argv: string[]): Promise<CommandResult> {
  return await command(argv, { env: { ROLLCALL_CONFIG: config, ROLLCALL_PROFILE: profile }, cwd: folder });
}

/** The object of --json of a command that succeeds. */
async function json(profile: string, ...argv: string[]) {
  const { code, stdout, stderr } = await as(profile, ...argv, "--json");
  expect(code, stdout + stderr).toBe(0);
  return JSON.parse(stdout);
}

/** Changes a file of the environment `letters`. */
function edit(file: string, change: (text: string) => string): void {
  writeFileSync(join(folder, "letters", file), change(readFileSync(join(folder, "letters", file), "utf8")));
}

test("an environment is published, run by another organisation, fixed, compared, yanked, pulled and copied", async () => {
  const publish = ["env", "publish", "letters", "--owner", "alice"];
  const published = await as("alice", ...publish, "--visibility", "public", "--tag", "stable");
  expect(published.stdout + published.stderr).toContain(`Published ${NAME}@0.1.0 (public)\nsha256:`);
  expect(published.stdout).toMatch(/\nvalidation passed, \d+ rows played\n[\s\S]*✓ rewards[\s\S]*\nmean rewards: /);
  expect(published.stdout).toContain(`\n  npx rollcall eval ${NAME}@0.1.0 -m MODEL -b URL --profile alice\n`);

  edit("package.json", (text) => text.replace('"version": "0.1.0"', '"version": "0.1.1"'));
  edit("environment.ts", (text) => text.replace("default(12)", "default(13)"));
  const fixed = await json("alice", ...publish);
  expect(fixed).toMatchObject({ id: `${NAME}@0.1.1`, visibility: "public", tags: ["latest"] });

  const played = async (range: string) => {
    const short = ["-m", "m", "-b", model.url, "-n", "2", "-r", "1"];
    const { run_id } = await json("bob", "eval", `${NAME}${range}`, ...short);
    return (await json("bob", "run", "show", run_id)).environment;
  };
  expect(await played("@^0.1")).toMatchObject({ id: NAME, version: "0.1.1", digest: fixed.digest });
  expect(await played("@stable")).toMatchObject({ id: NAME, version: "0.1.0" });

  const { files } = await json("bob", "env", "diff", `${NAME}@0.1.0`, `${NAME}@0.1.1`);
  const paths = files.map(({ path }: { path: string }) => path);
  expect(paths).toEqual(["environment.ts", "package.json", CODE_FILE]);
  expect(files[0]).toMatchObject({ change: "changed", patch: expect.stringMatching(/\n-.*12.*\n\+.*13.*\n/) });
  expect(files[2].patch).toBeNull();

  await json("alice", "env", "yank", `${NAME}@0.1.1`, "--reason", "its words are too long");
  expect(await played("")).toMatchObject({ version: "0.1.0" });
  const shown = await as("bob", "env", "show", `${NAME}@0.1.1`);
  expect(shown.stdout).toMatch(/\nstate +yanked: its words are too long\n[\s\S]*\n0\.1\.1 [^\n]*yanked: its words/);
  await json("alice", "env", "yank", `${NAME}@0.1.1`, "--undo");
  expect(await played("")).toMatchObject({ version: "0.1.1" });

  const pulled = await json("bob", "env", "pull", `${NAME}@0.1.1`, "pulled");
  expect(pulled).toMatchObject({ id: `${NAME}@0.1.1`, digest: fixed.digest, folder: join(folder, "pulled") });
  const [ours, theirs] = ["letters", "pulled"].map((of) => readFileSync(join(folder, of, "environment.ts"), "utf8"));
  expect(theirs).toBe(ours);
  const again = await as("bob", "env", "pull", NAME, "pulled");
  expect([again.code, again.stderr]).toEqual([2, expect.stringContaining("is not an empty folder")]);

  const operator = new RollcallClient({ baseUrl: first.url, apiKey: first.key });
  await operator.environments.takeDown(`${NAME}@0.1.1`, "a complaint");
  const { environment, version } = await json("bob", "env", "show", `${NAME}@0.1.1`);
  expect([environment, version.taken_down.reason, version.digest]).toEqual([null, "a complaint", fixed.digest]);
  const refused = await as("bob", "env", "pull", `${NAME}@0.1.1`, "refused");
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("a complaint")]);
  expect(existsSync(join(folder, "refused"))).toBe(false);

  const copied = await json("other", "env", "install", `${NAME}@0.1.0`, "--from", "bob");
  expect(copied).toMatchObject({ id: `${NAME}@0.1.0`, visibility: "private" });
  expect(copied.digest).not.toBe(fixed.digest);
  expect((await json("other", "env", "show", NAME)).versions.data).toHaveLength(1);
});

test("tags, deprecation and grants are changed and undone", async () => {
  edit("package.json", (text) => text.replace(/"version": "[^"]+"/, '"version": "0.2.0"'));
  edit("package.json", (text) => text.replace('"name": "letters"', '"name": "@alice/more-letters"'));
  const { id, name } = await json("alice", "env", "publish", "letters", "--visibility", "public", "-a", "length=5");
  expect(id).toBe("alice/more-letters@0.2.0");

  expect(await json("alice", "env", "tag", id, "beta")).toMatchObject({ id: "beta", version: "0.2.0" });
  expect((await json("bob", "env", "show", `${name}@beta`)).version.tags).toEqual(["beta", "latest"]);
  expect((await as("alice", "env", "tag", name, "beta", "--delete")).stdout).toBe(`Deleted ${name}@beta\n`);
  const latest = await as("alice", "env", "tag", name, "latest", "--delete");
  expect([latest.code, latest.stderr]).toEqual([2, expect.stringContaining("latest is always there")]);

  const advice = await as("alice", "env", "deprecate", id, "--message", `use ${NAME}`);
  expect(advice.stdout).toBe(`${id}: deprecated: use ${NAME}\n`);
  expect((await json("alice", "env", "deprecate", id, "--undo")).deprecated).toBeNull();

  const [secret, host] = ["secret:KEY", "fetch:https://api.example.com/"];
  expect((await json("bob", "env", "grant", name, secret, host)).needs).toEqual([secret, host]);
  expect((await json("bob", "env", "grant", name, secret, "--revoke")).needs).toEqual([host]);
  expect((await as("bob", "env", "grant", name)).stdout).toBe(`${name} may use ${host}\n`);
  expect((await json("bob", "env", "grant", name, "--revoke")).needs).toEqual([]);

  const found = await json("bob", "env", "search", "more-letters", "--owner", "alice");
  expect(found.data.map((one: { id: string }) => one.id)).toEqual([name]);
});

test("the evals of a project are shown for each version of an environment, and those of others are not", async () => {
  makeEnvironment("counted", "single-turn", folder);
  const publish = ["env", "publish", "counted", "--owner", "alice", "--visibility", "public"];
  const { name } = await json("alice", ...publish);
  const play = (named: string) => json("bob", "eval", name, "-m", named, "-b", model.url, "-n", "2", "-r", "1");
  await play("small");
  await play("large");
  const manifest = join(folder, "counted", "package.json");
  writeFileSync(manifest, readFileSync(manifest, "utf8").replace('"version": "0.1.0"', '"version": "0.1.1"'));
  await json("alice", ...publish);
  await play("small");

  const { code, stdout } = await as("bob", "env", "results", name);
  expect([code, stdout]).toEqual([0, expect.stringContaining(`Results of this project on ${name}, from all 3 runs\n`)]);
  // The index follows a run by a moment, so the newest eval may have no score yet.
  expect(stdout).toMatch(/\nversion 0\.1\.1\nplace +model +reward +95 % +tasks[^\n]*\n─[^\n]*\n(1|–) +small +\S/);

  const all = await json("bob", "env", "results", name);
  expect(all).toMatchObject({ object: "environment_results", id: name, runs: 3 });
  const modelsOf = (rows: readonly { version: string; model: string }[]) => rows.map((row) => [row.version, row.model]);
  expect(modelsOf(all.rows)).toHaveLength(3);
  const one = await json("bob", "env", "results", name, "--version", "0.1.1");
  expect(modelsOf(one.rows)).toEqual([["0.1.1", "small"]]);
  expect((await as("alice", "env", "results", name)).stdout).toMatch(/from all 0 runs\n\nNo evals\.\n$/);
});

test("a command that cannot work says which argument is wrong", async () => {
  makeEnvironment("plain", "single-turn", folder);
  mkdirSync(join(folder, "broken"));
  const manifest = { name: "broken", version: "1.0.0", rollcall: { environment: "./environment.ts" } };
  writeFileSync(join(folder, "broken", "package.json"), JSON.stringify(manifest));
  writeFileSync(join(folder, "broken", "environment.ts"), 'import { nothing } from "./missing.ts"; nothing();');
  const refused: [readonly string[], string][] = [
    [["env", "publish", "plain"], "--owner: the name under which your organisation publishes is required"],
    [["env", "publish", "plain", "--owner", "A B"], "--owner: A B must be at most 38 lower-case"],
    [["env", "publish", "nowhere", "--owner", "alice"], "does not exist"],
    [["env", "publish", "broken", "--owner", "alice"], "cannot be bundled: "],
    [["env", "publish", "plain", "--owner", "carol"], "publishes as alice/"],
    [["env", "yank", NAME, "--reason", "x"], `name one version of ${NAME}`],
    [["env", "yank", `${NAME}@0.1.0`], "--reason: is required, or --undo"],
    [["env", "yank", `${NAME}@0.1.0`, "--reason", "x", "--undo"], "cannot be combined with --undo"],
    [["env", "show", "alice/nothing"], "no published environment alice/nothing"],
    [["env", "results", `${NAME}@0.1.0`], `name the environment without a version: ${NAME} --version 0.1.0`],
    [["env", "results", "alice/nothing"], "no environment alice/nothing"],
    [["env", "pull", "calculator"], "is not the name of a published environment: use owner/name"],
    [["env", "install", NAME], "--from: the profile"],
    [["env", "install", NAME, "--from", "nobody"], "there is no profile nobody"],
    [["eval", "alice/nothing", "-m", "m", "-b", model.url], "alice/nothing"],
  ];
  for (const [argv, why] of refused) {
    const { code, stderr } = await as("alice", ...argv);
    expect([code, stderr], argv.join(" ")).toEqual([2, expect.stringContaining(why)]);
  }
});

test("a folder gives the same bytes twice, and says from which commit they are", async () => {
  const made = join(folder, "kept");
  makeEnvironment("kept", "single-turn", folder);
  writeFileSync(join(made, "package-lock.json"), "{}");
  writeFileSync(join(made, "notes.txt"), "not in files of package.json");
  const pack = () => packEnvironment(made, { owner: "alice", args: undefined });
  const [one, two] = [await pack(), await pack()];
  expect(Buffer.compare(one.bytes, two.bytes)).toBe(0);
  const files = await unpackFiles(one.bytes);
  expect([...files.keys()]).toEqual(["README.md", "environment.ts", "package-lock.json", "package.json", CODE_FILE]);
  expect(one.commit).toBeNull();

  const git = (...words: string[]) => execFileSync("git", words, { cwd: made, encoding: "utf8" }).trim();
  git("init", "--quiet");
  git("remote", "add", "origin", "https://user:password@git.example/alice/kept.git");
  git("add", ".");
  git("-c", "user.name=a", "-c", "user.email=a@b.example", "commit", "--quiet", "-m", "kept");
  const commit = git("rev-parse", "HEAD");
  const clean = await pack();
  const manifest = JSON.parse(Buffer.from((await unpackFiles(clean.bytes)).get("package.json") ?? []).toString());
  expect(manifest).toMatchObject({
    name: "@alice/kept",
    repository: "https://git.example/alice/kept.git",
    rollcall: { environment: "./environment.ts", commit, builder: expect.stringMatching(/^rollcall \d/) },
  });
  expect(JSON.stringify(manifest)).not.toMatch(/file:|password/);
  writeFileSync(join(made, "environment.ts"), `${readFileSync(join(made, "environment.ts"), "utf8")}\n`);
  expect((await pack()).commit).toBe(`${commit}-dirty`);
});

test("a package whose files would be written outside of the folder is refused", async () => {
  for (const path of ["../outside", "a/../../outside", "/outside", "a\\..\\outside"]) {
    const bytes = await packFiles(new Map([[path, Buffer.from("x")]]));
    await expect(unpackFiles(bytes), path).rejects.toThrow("is not a plain file below package/");
  }
  expect(existsSync(join(folder, "outside"))).toBe(false);
});
