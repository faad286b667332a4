/** Runs the program in docs/sdk.md unchanged, in a process of its own, against a platform and a model. */
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { rollcallName } from "../../src/local/package-root.ts";
import { makeThrowAwayDirectory } from "../../src/local/state-directory.ts";
import { RollcallClient } from "../../src/sdk/client.ts";
import { Resource } from "../../src/sdk/resource.ts";
import { startScriptedModel } from "../fakes/scripted-model.ts";
import { deathOf, endGroup, serve } from "../local/served-platform.ts";
import { testPort } from "../local/test-port.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const PAGE = readFileSync(join(ROOT, "docs/sdk.md"), "utf8");
const [, PROGRAM = ""] = /```ts\n([\s\S]*?)```/.exec(PAGE) ?? [];

/** A folder in which `rollcall` is installed, with the program in it. */
function folderWithProgram(): string {
  const folder = makeThrowAwayDirectory();
  const own = join(folder, "node_modules", rollcallName());
  mkdirSync(dirname(own), { recursive: true });
  symlinkSync(ROOT, own);
  writeFileSync(join(folder, "package.json"), '{"type":"module"}');
  writeFileSync(join(folder, "program.ts"), PROGRAM);
  return folder;
}

test("the program of the page runs an eval over an uploaded dataset and prints its results", async () => {
  const [folder, directory] = [folderWithProgram(), makeThrowAwayDirectory()];
  const model = await startScriptedModel({ reply: () => ({ content: "\\boxed{4}" }) });
  const served = await serve(directory, testPort(45));
  try {
    const env = { ROLLCALL_URL: served.url, ROLLCALL_API_KEY: served.key, MODEL_URL: model.url };
    const { stdout } = await promisify(execFile)(process.execPath, ["program.ts"], {
      cwd: folder,
      env: { ...process.env, ...env },
    });
    const lines = stdout.trimEnd().split("\n");
    expect(lines.slice(0, 5)).toEqual([...Array(4).fill("scored 1"), "completed 1"]);
    expect(lines.slice(5)).toEqual(Array(4).fill(expect.stringMatching(/^[0-9a-f]+ 1$/)));
  } finally {
    endGroup(served);
    await deathOf(served.workerd);
    await model.stop();
    for (const left of [folder, directory]) rmSync(left, { recursive: true, force: true });
  }
});

/** The methods of the client's resources and of nested resources: `runs.create`, `runs.groups.list`, …. */
function methodsOf(resource: Resource, prefix = ""): string[] {
  const within = Object.entries(resource).flatMap(([name, value]) => {
    return value instanceof Resource ? methodsOf(value, `${prefix}${name}.`) : [];
  });
  const own = new Set<string>();
  for (let proto: object = Object.getPrototypeOf(resource); proto !== Resource.prototype; ) {
    for (const name of Object.getOwnPropertyNames(proto)) own.add(name);
    proto = Object.getPrototypeOf(proto);
  }
  const methods = [...own].filter((name) => name !== "constructor" && name !== "at");
  return [...methods.map((name) => prefix + name), ...within];
}

test("the page lists every method of the client, and no other", () => {
  const methods = methodsOf(new RollcallClient({ baseUrl: "http://rollcall.test" }));
  const [, table = ""] = /## Methods\n[\s\S]*?\n(\|[\s\S]*?)\n\n/.exec(PAGE) ?? [];
  const rows = Array.from(table.matchAll(/^\| `client\.?([\w.]*)` \| (.*) \|$/gm));
  const named = rows.flatMap(([, resource = "", cell = ""]) => {
    return Array.from(cell.matchAll(/`(\w+)`/g), ([, name]) => (resource === "" ? name : `${resource}.${name}`));
  });
  expect(named.sort()).toEqual(methods.sort());
});
