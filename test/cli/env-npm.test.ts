/** A real npm client publishes, reads and installs environments of a platform. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { makeEnvironment } from "../../src/cli/commands/env-init.ts";
import { packEnvironment } from "../../src/cli/hub/pack-environment.ts";
import { LIBRARY_FOLDER } from "../../src/contract/library-file.ts";
import { addLibrary } from "../../src/local/assets.ts";
import { packFiles } from "../../src/local/pack-files.ts";
import { PACKAGE_ROOT } from "../../src/local/package-root.ts";
import { bundlePage } from "../../src/local/page-bundle.ts";
import { bootPlatform, type Platform } from "../../src/local/platform.ts";
import { makeThrowAwayDirectory } from "../../src/local/state-directory.ts";
import { RollcallClient } from "../../src/sdk/client.ts";
import { testPort } from "../local/test-port.ts";

const folder = makeThrowAwayDirectory();
const NAME = "@alice/letters";

let platform: Platform;
let alice: RollcallClient;
let key: string | null | undefined;

beforeAll(async () => {
  platform = await bootPlatform({
    directory: null,
    page: await assetsWithLibrary(),
    port: testPort(14),
    log: (line) => process.stderr.write(`${line}\n`),
  });
  const operator = new RollcallClient({ baseUrl: platform.url, apiKey: platform.key });
  const first = (await operator.organizations.create({ name: "alice", project: "main" })).key;
  alice = new RollcallClient({ baseUrl: platform.url, apiKey: first.key ?? "", project: "main" });
  // npm names no project, so its key is for one.
  ({ key } = await alice.keys.create({ name: "npm", scopes: ["environments:write"], project: "main" }));
  makeEnvironment("letters", "single-turn", folder);
  const registry = `@alice:registry=${platform.url}/npm/\n`;
  const noOther = "registry=http://127.0.0.1:9/\naudit=false\nfund=false\nupdate-notifier=false\nfetch-retries=0\n";
  const token = `//${new URL(platform.url).host}/npm/:_authToken=${key}\n`;
  for (const [name, npmrc] of [
    ["alice", registry + token],
    ["stranger", registry],
    ["platform-only", `registry=${platform.url}/npm/\n`],
  ] as const) {
    mkdirSync(join(folder, name));
    writeFileSync(join(folder, name, ".npmrc"), noOther + npmrc);
    writeFileSync(join(folder, name, "package.json"), "{}");
  }
});
/** The page, with a small package in place of Rollcall's own, as `npm run package` leaves it in a checkout. */
async function assetsWithLibrary(): Promise<string> {
  const [checkout, page] = [join(folder, "checkout"), await pageAlone("assets")];
  const names = { name: "@rollcall/rollcall", importedAs: "rollcall" };
  const manifest = { ...names, version: "0.2.7", type: "module", exports: "./main.js", license: "MIT" };
  const files = { "package.json": JSON.stringify(manifest), "main.js": "export const library = true;\n" };
  const tarball = await packFiles(new Map(Object.entries(files).map(([path, text]) => [path, Buffer.from(text)])));
  mkdirSync(join(checkout, "dist"), { recursive: true });
  const root = { name: "rollcall", publishedAs: "@rollcall/rollcall", version: "0.2.7" };
  writeFileSync(join(checkout, "package.json"), JSON.stringify(root));
  writeFileSync(join(checkout, "dist", "rollcall-rollcall-0.2.7.tgz"), tarball);
  await addLibrary(checkout, page);
  return page;
}

async function pageAlone(name: string): Promise<string> {
  const page = join(folder, name, "web");
  const filter = (from: string) => basename(from) !== LIBRARY_FOLDER;
  cpSync(await bundlePage(PACKAGE_ROOT), page, { recursive: true, filter });
  return page;
}

afterAll(async () => {
  await platform.stop();
  rmSync(folder, { recursive: true });
});

interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Who runs npm: one who has a key, one who has none, or one whose only registry is the platform. */
type Who = "alice" | "stranger" | "platform-only";

/** Runs npm with a cache and settings of its own. */
async function npm(who: Who, ...words: string[]): Promise<Ran> {
  const env: NodeJS.Dict<string> = {
    PATH: process.env["PATH"],
    HOME: join(folder, who),
    npm_config_userconfig: join(folder, who, ".npmrc"),
    npm_config_cache: join(folder, `${who}-cache`),
  };
  try {
    const running = promisify(execFile)("npm", words, {
      cwd: join(folder, who),
      env: { ...env } as NodeJS.ProcessEnv,
    });
    // It must not wait for an answer to a question.
    running.child.stdin?.end();
    return { code: 0, ...(await running) };
  } catch (thrown) {
    if (!(thrown instanceof Error && "stderr" in thrown && "code" in thrown)) throw thrown;
    return { code: Number(thrown.code), stdout: "", stderr: String(thrown.stderr) };
  }
}

async function done(who: Who, ...words: string[]): Promise<string> {
  const { code, stdout, stderr } = await npm(who, ...words);
  expect(code, `npm ${words.join(" ")}\n${stdout}${stderr}`).toBe(0);
  return stdout.trim();
}

/** The file of a package that depends on nothing, unless dependencies are given. */
async function packVersion(
  version: string,
  name = "letters",
  description = "a game",
  dependencies?: Readonly<Record<string, string>>,
): Promise<string> {
  const manifest = join(folder, "letters", "package.json");
  const before = JSON.parse(readFileSync(manifest, "utf8"));
  writeFileSync(manifest, JSON.stringify({ ...before, name, version, description, dependencies }));
  const { bytes } = await packEnvironment(join(folder, "letters"), { owner: "alice", args: undefined });
  const file = join(folder, `${name}-${version}.tgz`);
  writeFileSync(file, bytes);
  return file;
}

test("npm publishes a version, and strangers install it once it is public", async () => {
  const registry = `--registry=${platform.url}/npm/`;
  await done("stranger", "ping", registry);
  expect(await done("alice", "whoami", registry)).toMatch(/^key_/);
  await done("alice", "publish", await packVersion("1.0.0"), "--access", "public");
  const known = await alice.environments.get("alice/letters");
  expect(known.published).toMatchObject({ version: "1.0.0", visibility: "public", validation: { ok: true } });
  expect(await done("stranger", "view", NAME, "dist-tags.latest")).toBe("1.0.0");
  await done("stranger", "install", NAME);
  const installed = JSON.parse(readFileSync(join(folder, "stranger", "node_modules", NAME, "package.json"), "utf8"));
  expect(installed).toMatchObject({ name: NAME, version: "1.0.0" });
  const lock = JSON.parse(readFileSync(join(folder, "stranger", "package-lock.json"), "utf8"));
  expect(lock.packages[`node_modules/${NAME}`]).toMatchObject({
    resolved: `${platform.url}/npm/${NAME}/-/letters-1.0.0.tgz`,
    integrity: known.published?.package.integrity,
  });
  rmSync(join(folder, "stranger", "node_modules"), { recursive: true });
  rmSync(join(folder, "stranger-cache"), { recursive: true });
  await done("stranger", "ci");
});

test("npm moves tags and deprecates versions, and chooses no yanked version for a range", async () => {
  await done("alice", "publish", await packVersion("1.1.0"), "--access", "public");
  await done("alice", "dist-tag", "add", `${NAME}@1.0.0`, "stable");
  expect(await done("stranger", "dist-tag", "ls", NAME)).toBe("latest: 1.1.0\nstable: 1.0.0");
  await done("alice", "dist-tag", "rm", NAME, "stable");
  expect(await done("stranger", "dist-tag", "ls", NAME)).toBe("latest: 1.1.0");

  await done("alice", "deprecate", `${NAME}@1.0.0`, "use 1.1.0");
  expect(await done("stranger", "view", `${NAME}@1.0.0`, "deprecated")).toBe("use 1.1.0");
  await done("alice", "deprecate", `${NAME}@1.0.0`, "");
  expect(await done("stranger", "view", `${NAME}@1.0.0`, "deprecated")).toBe("");

  await alice.environments.update("alice/letters@1.1.0", { yanked: { reason: "its reward is wrong" } });
  await done("stranger", "install", `${NAME}@^1.0.0`);
  const installed = () =>
    JSON.parse(readFileSync(join(folder, "stranger", "node_modules", NAME, "package.json"), "utf8")).version;
  expect(installed()).toBe("1.0.0");
  const exact = await npm("stranger", "install", `${NAME}@1.1.0`);
  expect([exact.code, installed(), exact.stderr]).toEqual([0, "1.1.0", expect.stringContaining("its reward is wrong")]);
  // npm sends all versions back: the text of a yank is not taken for a deprecation.
  await done("alice", "deprecate", `${NAME}@1.0.0`, "old");
  await alice.environments.update("alice/letters@1.1.0", { yanked: null });
  expect((await alice.environments.get("alice/letters@1.1.0")).published?.deprecated).toBeNull();
});

test("npm publish with a tag leaves latest where it is, and other files under a published version are refused", async () => {
  await done("alice", "publish", await packVersion("1.2.0"), "--access", "public", "--tag", "next");
  expect(await done("stranger", "dist-tag", "ls", NAME)).toBe("latest: 1.1.0\nnext: 1.2.0");
  // npm itself refuses a version that it sees in the registry.
  const data = readFileSync(await packVersion("1.2.0", "letters", "other words")).toString("base64");
  const reply = await fetch(`${platform.url}/npm/@alice%2fletters`, {
    method: "PUT",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ versions: { "1.2.0": {} }, _attachments: { "letters.tgz": { data } } }),
  });
  expect([reply.status, await reply.text()]).toEqual([
    409,
    expect.stringContaining("was published before with other files"),
  ]);
});

test("npm shows why it is refused", async () => {
  const plain = join(folder, "plain");
  mkdirSync(plain);
  writeFileSync(join(plain, "package.json"), JSON.stringify({ name: "@alice/plain", version: "1.0.0" }));
  const file = await packVersion("2.0.0");
  const everything = `--registry=${platform.url}/npm/`;
  const refused: [who: Who, words: string[], why: string][] = [
    ["alice", ["publish", plain], "has no rollcall-environment.js"],
    ["alice", ["publish", file, "--access", "restricted"], "is public, which does not change"],
    ["alice", ["install", "@alice/nothing"], "no package @alice/nothing"],
    ["alice", ["dist-tag", "add", `${NAME}@9.0.0`, "beta"], "has no version 9.0.0"],
    ["alice", ["publish", file, "--access", "public", "--tag", "Beta"], "must be a lower-case letter"],
    ["alice", ["dist-tag", "rm", NAME, "latest"], "latest is always there"],
    ["alice", ["install", `${NAME}@nightly`], "No matching version found for @alice/letters@nightly"],
    ["alice", ["unpublish", `${NAME}@1.0.0`], "a published version cannot be deleted"],
    ["alice", ["unpublish", NAME, "--force"], "a published version cannot be deleted"],
    ["alice", ["search", "letters", everything], "use `rollcall env search`"],
    ["alice", ["login", everything], "write //HOST/npm/:_authToken=KEY in .npmrc"],
    ["stranger", ["audit", everything], "this registry lists no vulnerabilities"],
    ["alice", ["owner", "add", "bob", NAME], "owners are organisations"],
    ["platform-only", ["install", "zod"], "let npm get other packages from your usual registry"],
    ["stranger", ["publish", file], "ENEEDAUTH"],
    ["stranger", ["install", `${NAME}@9.9.9`], "No matching version"],
  ];
  for (const [who, words, why] of refused) {
    const { code, stderr } = await npm(who, ...words);
    expect([code === 0, stderr], words.join(" ")).toEqual([false, expect.stringContaining(why)]);
  }
});

test("npm logout removes the key from .npmrc and does not print it", async () => {
  const npmrc = join(folder, "leaving.npmrc");
  const { host } = new URL(platform.url);
  writeFileSync(npmrc, `registry=${platform.url}/npm/\n//${host}/npm/:_authToken=${key}\n`);
  const { code, stdout, stderr } = await npm(
    "stranger",
    "logout",
    `--userconfig=${npmrc}`,
    `--registry=${platform.url}/npm/`,
  );
  expect([code, `${stdout}${stderr}`]).toEqual([0, expect.not.stringContaining(key ?? "rk_")]);
  expect(readFileSync(npmrc, "utf8")).not.toContain(key ?? "rk_");
});

test("every path below /npm/ is refused in the form that npm prints", async () => {
  const refusals: [method: string, path: string, status: number, why: string][] = [
    ["PUT", "-/user/org.couchdb.user:bob", 404, "this registry has no users"],
    ["POST", "-/npm/v1/security/advisories/bulk", 404, "this registry lists no vulnerabilities"],
    ["DELETE", "@alice/letters/-/letters-1.0.0.tgz/-rev/1", 405, "a published version cannot be deleted"],
    ["DELETE", "@alice%2fletters", 405, "/npm/@alice%2fletters allows GET, PUT"],
    ["GET", "-/a/path/of/the/future", 404, "no such path"],
    ["GET", "-/all", 404, "no package -/all"],
    ["GET", "letters", 404, "and rollcall: let npm get other packages from your usual registry"],
  ];
  for (const [method, path, status, why] of refusals) {
    const reply = await fetch(`${platform.url}/npm/${path}`, { method });
    const body = await reply.json();
    expect([path, reply.status, body]).toEqual([path, status, { error: expect.stringContaining(why) }]);
  }
});

test("a private version needs the key", async () => {
  const file = await packVersion("1.0.0", "hidden");
  await done("alice", "publish", file);
  await done("alice", "install", "@alice/hidden");
  const other = await npm("stranger", "install", "@alice/hidden");
  expect([other.code, other.stderr]).toEqual([1, expect.stringContaining("no package @alice/hidden")]);
});

test("npm shows the owner, and the versions of a range", async () => {
  expect(await done("stranger", "owner", "ls", NAME)).toBe("alice <>");
  expect(await done("stranger", "view", `${NAME}@~1.0.0`, "version")).toBe("1.0.0");
});

test("a package that depends on rollcall is installed with it from the platform alone", async () => {
  const file = await packVersion("1.0.0", "needy", "a game", { rollcall: "^0.2.0" });
  await done("alice", "publish", file, "--access", "public");
  await done("platform-only", "install", "@alice/needy");
  const cwd = join(folder, "platform-only");
  const { packages } = JSON.parse(readFileSync(join(cwd, "package-lock.json"), "utf8"));
  const tarball = readFileSync(join(folder, "checkout", "dist", "rollcall-rollcall-0.2.7.tgz"));
  expect(packages["node_modules/rollcall"]).toMatchObject({
    version: "0.2.7",
    resolved: `${platform.url}/npm/rollcall/-/rollcall-0.2.7.tgz`,
    integrity: `sha512-${createHash("sha512").update(tarball).digest("base64")}`,
  });
  const script = 'console.log((await import("rollcall")).library)';
  const node = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", script], { cwd });
  expect(node.stdout).toBe("true\n");
  expect(await done("platform-only", "view", "rollcall", "dist-tags")).toBe("{ latest: '0.2.7' }");
  expect(await done("platform-only", "dist-tag", "ls", "rollcall")).toBe("latest: 0.2.7");
});

test("with the platform as registry of one scope, rollcall comes by its address under that name, and satisfies what needs it", async () => {
  const address = await done("stranger", "view", "rollcall", "dist.tarball", `--registry=${platform.url}/npm/`);
  await done("stranger", "install", `rollcall@${address}`, "@alice/needy");
  const tree = JSON.parse(await done("stranger", "ls", "--all", "--json"));
  expect(tree.problems).toBeUndefined();
  expect(tree.dependencies).toMatchObject({
    rollcall: { version: "0.2.7" },
    "@alice/needy": { dependencies: { rollcall: { version: "0.2.7" } } },
  });
});

test("a platform without the package says how to get it", async () => {
  const log = (line: string) => process.stderr.write(`${line}\n`);
  const bare = await bootPlatform({ directory: null, port: testPort(15), page: await pageAlone("bare"), log });
  try {
    const { code, stderr } = await npm("platform-only", "view", "rollcall", `--registry=${bare.url}/npm/`);
    expect([code, stderr]).toEqual([1, expect.stringContaining("after `npm run package` in the checkout")]);
    const tarball = await fetch(`${bare.url}/npm/rollcall/-/rollcall-0.2.7.tgz`);
    expect([tarball.status, await tarball.json()]).toEqual([
      404,
      { error: expect.stringContaining("no package rollcall") },
    ]);
  } finally {
    await bare.stop();
  }
});

test("no path leads from the package to other assets", async () => {
  const { port } = new URL(platform.url);
  const statusOf = (path: string) =>
    new Promise((resolve, reject) => {
      // fetch would resolve the dots itself.
      request({ port, path }, (reply) => resolve(reply.resume().statusCode))
        .on("error", reject)
        .end();
    });
  expect(await statusOf("/npm/rollcall/-/rollcall-0.2.7.tgz")).toBe(200);
  for (const path of [
    "/npm/rollcall/-/rollcall-0.2.6.tgz",
    "/npm/rollcall/-/library.json",
    "/npm/rollcall/-/..%2f..%2findex.html",
    "/npm/rollcall/-/../../../index.html",
    "/npm/rollcall/-/../../../library/library.tgz",
    "/npm/..%2f..%2findex.html",
    "/library/library.tgz",
    "/library/library.json",
    "/assets/..%2flibrary/library.tgz",
    "/assets/../library/library.tgz",
  ]) {
    expect([path, await statusOf(path)]).toEqual([path, 404]);
  }
});
