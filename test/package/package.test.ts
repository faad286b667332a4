/**
 * An environment outside this repository, from start to end: Rollcall is packed and installed in an empty folder and
 * makes an environment there; the environment's own tests run; it is packed too; and both packages, installed in
 * another empty folder, play it.
 *
 * npm really installs in each of the three folders. Each begins with the packages that this checkout has unpacked: npm
 * keeps what is needed, adds what is missing and removes the rest. Unpacking workerd and Node three times would take a
 * minute and test nothing new.
 */
import { createHash } from "node:crypto";
import { appendFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import manifest from "../../package.json" with { type: "json" };
import { runAction } from "../cli/run-action.ts";
import { configFor } from "../local/deployable.ts";
import { succeedIn, unpackedPackages } from "../local/in-a-folder.ts";
import { endGroup, serve } from "../local/served-platform.ts";
import { testPort } from "../local/test-port.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const INSTALL = ["npm", "install", "--prefer-offline", "--no-audit", "--no-fund"] as const;
const TYPES = ["--strict", "--noEmit", "--module", "nodenext", "--target", "es2024", "--skipLibCheck"] as const;

const base = mkdtempSync(join(tmpdir(), "rollcall-package-"));
const author = join(base, "author");
const environment = join(author, "my-env");
const reader = join(base, "reader");
let tarball = "";

beforeAll(async () => {
  const script = join(ROOT, "scripts/package.ts");
  tarball = (await succeedIn(ROOT, [process.execPath, script, "--out", base])).trim();
  mkdirSync(author);
  await unpackedPackages(ROOT, author);
  await succeedIn(author, [...INSTALL, `${manifest.name}@${tarball}`]);
  await succeedIn(author, ["npx", "rollcall", "env", "init", "my-env"]);
  // A separate file in its own folder, which must be included.
  mkdirSync(join(environment, "letters"));
  writeFileSync(join(environment, "letters/letters.ts"), 'export const LETTERS = ["a", "r"];\n');
  appendFileSync(join(environment, "environment.ts"), 'export { LETTERS } from "./letters/letters.ts";\n');
  await unpackedPackages(ROOT, environment);
  await succeedIn(environment, INSTALL);
});

afterAll(() => rm(base, { recursive: true }));

test("a new environment passes its own tests, its types and its validation", async () => {
  expect(await succeedIn(environment, ["npm", "test"])).toMatch(/Tests +\d+ passed/);
  await succeedIn(environment, ["npm", "run", "check"]);
  const command = ["npm", "run", "--silent", "validate", "--", "--json"] as const;
  const report = JSON.parse(await succeedIn(environment, command));
  expect(report).toMatchObject({ environment: "my-env", version: "0.1.0", ok: true });
});

test("under its published name it is installed, makes an environment and runs from nowhere", async () => {
  const plain = join(base, "plain");
  mkdirSync(plain);
  await unpackedPackages(ROOT, plain);
  await succeedIn(plain, [...INSTALL, tarball]);
  const version = `${manifest.version}\n`;
  expect(await succeedIn(plain, ["npx", "--no-install", "rollcall", "--version"])).toBe(version);
  const trainer = join("node_modules", manifest.publishedAs, "node_modules/@rollcall/trainer/main.js");
  expect(await succeedIn(plain, [process.execPath, trainer, "--help"])).toContain("--checkpoint");
  await succeedIn(plain, ["npx", "--no-install", "rollcall", "env", "init", "theirs"]);
  const made = JSON.parse(readFileSync(join(plain, "theirs/package.json"), "utf8"));
  expect(made.devDependencies[manifest.name]).toBe(`file:${tarball}`);
  const play = ["npx", "--no-install", "rollcall", "eval", "./theirs", "--force", "-n", "2", "--ephemeral", "--json"];
  const summary = JSON.parse(await succeedIn(plain, ["env", ...play]));
  expect(summary).toMatchObject({ status: "completed", counts: { scored: 2 } });

  const empty = join(base, "empty");
  mkdirSync(empty);
  const run = ["npm", "exec", "--yes", "--prefer-offline", `--package=${tarball}`, "--", "rollcall"] as const;
  expect(await succeedIn(empty, [...run, "--version"])).toBe(version);
  expect(readdirSync(empty)).toEqual([]);
});

test("the action of GitHub installs a version of it from the registry, and runs that", async () => {
  const registry = await startRegistry();
  const folder = join(base, "job");
  mkdirSync(folder);
  writeFileSync(join(base, "npmrc"), `@rollcall:registry=${registry.url}\nprefer-offline=true\n`);
  try {
    const { code, log, summary } = await runAction({
      inputs: {
        environment: "calculator",
        "num-examples": "2",
        version: "^0.2.0",
        args: "--ephemeral",
        comment: "false",
      },
      ...{ token: "", api: registry.url, event: {}, folder },
      env: { npm_config_userconfig: join(base, "npmrc") },
    });
    expect(code, log).toBe(0);
    expect(summary).toContain("| rollouts | scored 2 |");
    // The tarball itself may come from the cache of npm, by its hash.
    expect(registry.served).toContain("/@rollcall%2frollcall");
  } finally {
    await registry.stop();
  }
});

/** A registry of npm that has the tarball alone. */
async function startRegistry() {
  const served: string[] = [];
  const bytes = readFileSync(tarball);
  const packed = JSON.parse(readFileSync(join(base, "package/package.json"), "utf8"));
  const { name, version } = packed;
  const integrity = `sha512-${createHash("sha512").update(bytes).digest("base64")}`;
  const server = createServer(({ url = "", headers }, response) => {
    served.push(url);
    const dist = { integrity, tarball: `http://${headers.host}/tarball.tgz` };
    const packument = { name, "dist-tags": { latest: version }, versions: { [version]: { ...packed, dist } } };
    response.end(url === "/tarball.tgz" ? bytes : JSON.stringify(packument));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const stop = () => new Promise<void>((resolve) => server.close(() => resolve()));
  return { url: `http://127.0.0.1:${port}/`, served, stop };
}

test("the installed package reports what a deployment of it lacks", async () => {
  writeFileSync(join(author, "wrangler.deploy.toml"), configFor(join(author, "node_modules", manifest.name)));
  const command = ["npx", "rollcall", "deploy", "check", "--config", "wrangler.deploy.toml", "--json"] as const;
  const found = JSON.parse(await succeedIn(author, command));
  expect(found).toEqual({ ok: true, findings: [], bundle_bytes: null });
});

test("the installed package exports the schemas and types of the API", async () => {
  writeFileSync(
    join(author, "wire.mts"),
    'import { Deleted, type RunView } from "rollcall/contract";\n' +
      'export const id: string = Deleted.parse({ id: "ep_1", object: "endpoint", deleted: true }).id;\n' +
      'export const status = (run: RunView): "queued" | "completed" | null =>\n' +
      '  run.status === "queued" || run.status === "completed" ? run.status : null;\n',
  );
  const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
  await succeedIn(author, [process.execPath, tsc, ...TYPES, "wire.mts"]);
  const script = 'import { id } from "./wire.mts"; console.log(id);';
  expect(await succeedIn(author, [process.execPath, "--input-type=module", "-e", script])).toBe("ep_1\n");
});

test("the bundled trainer finds all its imports", async () => {
  const main = join("node_modules", manifest.name, "node_modules/@rollcall/trainer/main.js");
  expect(await succeedIn(author, [process.execPath, main, "--help"])).toContain("--checkpoint");
});

test("packed, and installed next to rollcall elsewhere, it plays by name and by folder", async () => {
  const pack = ["npm", "pack", "--silent", "--pack-destination", base] as const;
  const packed = (await succeedIn(environment, pack)).trim();
  mkdirSync(reader);
  await unpackedPackages(ROOT, reader);
  await succeedIn(reader, [...INSTALL, `${manifest.name}@${tarball}`, join(base, packed)]);
  for (const named of ["my-env", "../author/my-env"]) {
    const command = ["npx", "rollcall", "eval", named, "--force", "-n", "3", "--json"] as const;
    const summary = JSON.parse(await succeedIn(reader, command));
    expect(summary).toMatchObject({
      status: "completed",
      environment: "my-env@0.1.0",
      counts: { planned: 3, scored: 3 },
    });
  }
  const registry = "environments/registry.ts";
  expect(readFileSync(join(reader, "node_modules", manifest.name, registry), "utf8")).toBe(
    readFileSync(join(ROOT, registry), "utf8"),
  );
});

test("the platform of the installed package serves it to npm, with the same files", async () => {
  const script = join(author, "node_modules", manifest.name, "bin/rollcall.mjs");
  const port = testPort(0);
  const platform = await serve(join(base, "state"), port, [script, "serve", "--json", "--port", String(port)]);
  try {
    const guest = join(base, "guest");
    mkdirSync(guest);
    await unpackedPackages(ROOT, guest);
    const address = `${platform.url}/npm/${manifest.name}/-/${manifest.name}-${manifest.version}.tgz`;
    await succeedIn(guest, [...INSTALL, `${manifest.name}@${address}`]);
    const load = ["--input-type=module", "-e", 'console.log(typeof (await import("rollcall")).Rubric)'] as const;
    expect(await succeedIn(guest, [process.execPath, ...load])).toBe("function\n");
    // A new environment depends on the package at the address from which it came.
    await succeedIn(guest, ["npx", "rollcall", "env", "init", "theirs"]);
    const made = JSON.parse(readFileSync(join(guest, "theirs/package.json"), "utf8"));
    expect(made.devDependencies[manifest.name]).toBe(address);

    const served = join(base, "served.tgz");
    writeFileSync(served, new Uint8Array(await (await fetch(address)).arrayBuffer()));
    const filesIn = async (file: string) => (await succeedIn(base, ["tar", "-tzf", file])).split("\n").sort();
    expect(await filesIn(served)).toEqual(await filesIn(tarball));
  } finally {
    endGroup(platform);
  }
});
