/** A wheel is published with the command, and installed by a real pip if this machine has one. */
import { execFile, execFileSync } from "node:child_process";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { keepProfile } from "../../src/cli/profiles.ts";
import { bootPlatform, type Platform } from "../../src/local/platform.ts";
import { makeThrowAwayDirectory } from "../../src/local/state-directory.ts";
import { RollcallClient } from "../../src/sdk/client.ts";
import { wheelOf } from "../hub/wheels.ts";
import { testPort } from "../local/test-port.ts";
import { command } from "./run-rollcall.ts";

const folder = makeThrowAwayDirectory();
const config = join(folder, "config.json");

let platform: Platform;
let key = "";

beforeAll(async () => {
  const log = (line: string) => process.stderr.write(`${line}\n`);
  platform = await bootPlatform({ directory: null, port: testPort(15), log });
  const operator = new RollcallClient({ baseUrl: platform.url, apiKey: platform.key });
  const first = (await operator.organizations.create({ name: "alice", project: "main" })).key;
  keepProfile(config, "alice", { platform: platform.url, key: first.key ?? "", project: "main" });
  const alice = new RollcallClient({ baseUrl: platform.url, apiKey: first.key ?? "", project: "main" });
  // pip names no project, so its key is for one.
  key = (await alice.keys.create({ name: "pip", scopes: ["environments:read"], project: "main" })).key ?? "";
});
afterAll(async () => {
  await platform.stop();
  rmSync(folder, { recursive: true });
});

async function alice(...argv: string[]) {
  return await command(argv, { env: { ROLLCALL_CONFIG: config, ROLLCALL_PROFILE: "alice" }, cwd: folder });
}

async function publish(name: string, version: string, ...flags: string[]): Promise<string> {
  const { file, bytes } = await wheelOf(name, version, ["Requires-Python: >=3.8"]);
  writeFileSync(join(folder, file), bytes);
  const { code, stdout, stderr } = await alice("env", "publish", file, "--owner", "alice", ...flags);
  expect(code, stdout + stderr).toBe(0);
  return stdout;
}

test("a wheel is published, shown and pulled by commands", async () => {
  const shown = await publish("guess_word", "1.0.0", "--visibility", "public");
  expect(shown).toContain("Published alice/guess-word@1.0.0 (public)\nsha256:");
  expect(shown).toContain("\nnot validated\n");
  expect((await alice("env", "show", "alice/guess-word")).stdout).toMatch(/\nkind +python\n/);
  expect((await alice("env", "pull", "alice/guess-word", "pulled")).code).toBe(0);
  const [file = ""] = readdirSync(join(folder, "pulled"));
  expect(file).toBe("guess_word-1.0.0-py3-none-any.whl");
  expect(readFileSync(join(folder, "pulled", file))).toEqual(readFileSync(join(folder, file)));
  const run = await alice("eval", "alice/guess-word", "-m", "m", "-b", "http://127.0.0.1:9/v1");
  expect([run.code, run.stderr]).toEqual([2, expect.stringContaining("is a Python environment")]);
  const other = await alice("env", "publish", "nothing.whl");
  expect([other.code, other.stderr]).toEqual([2, expect.stringContaining("nothing.whl cannot be read")]);
});

const hasPip = (() => {
  try {
    execFileSync("python3", ["-m", "pip", "--version"], { stdio: "ignore" });
    return true;
  } catch (error) {
    process.stderr.write(`pip is not tested: ${error instanceof Error ? error.message : error}\n`);
    return false;
  }
})();

/** Downloads by pip, from this platform only. Returns the files, and what pip said. */
async function download(target: string, credentials: string, ...wanted: string[]) {
  const index = `${platform.url.replace("://", `://${credentials}`)}/python/alice/simple`;
  const options = [
    "--isolated",
    "--disable-pip-version-check",
    "--no-input",
    "--no-cache-dir",
    "--no-deps",
    "--retries",
    "0",
  ];
  const words = ["-m", "pip", "download", ...options, "--index-url", index, "-d", join(folder, target), ...wanted];
  const { code, said } = await promisify(execFile)("python3", words).then(
    ({ stdout, stderr }) => ({ code: 0, said: stdout + stderr }),
    (failed: { code: number; stdout: string; stderr: string }) => ({
      code: failed.code,
      said: failed.stdout + failed.stderr,
    }),
  );
  return { said, files: code === 0 ? readdirSync(join(folder, target)).sort() : [] };
}

test.skipIf(!hasPip)("pip finds versions, checks hashes, skips what is yanked and sends the key", async () => {
  await publish("guess_word", "1.1.0");
  await publish("guess_word", "1.2.0rc1");
  expect((await download("newest", "", "Guess.Word")).files).toEqual(["guess_word-1.1.0-py3-none-any.whl"]);
  await alice("env", "yank", "alice/guess-word@1.1.0", "--reason", "its reward is wrong");
  expect((await download("range", "", "guess-word<2")).files).toEqual(["guess_word-1.0.0-py3-none-any.whl"]);
  const exact = await download("exact", "", "guess-word==1.1.0");
  expect(exact.files).toEqual(["guess_word-1.1.0-py3-none-any.whl"]);
  expect(exact.said).toContain("its reward is wrong");
  expect((await download("early", "", "--pre", "guess-word")).files).toEqual(["guess_word-1.2.0rc1-py3-none-any.whl"]);

  await publish("hidden", "1.0.0");
  expect((await download("stranger", "", "hidden")).said).toContain("No matching distribution");
  expect((await download("wrong", "__token__:guess@", "hidden")).said).toContain("No matching distribution");
  expect((await download("mine", `__token__:${key}@`, "hidden")).files).toEqual(["hidden-1.0.0-py3-none-any.whl"]);
});
