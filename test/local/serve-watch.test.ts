/** `rollcall serve --watch`: an author edits an environment while a platform plays it. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { readReadyFile } from "../../src/local/state-directory.ts";
import { RollcallClient } from "../../src/sdk/client.ts";
import { temporaryDirectory } from "../cli/temporary-directory.ts";
import { WAIT_HANGS_MS } from "../hang-limits.ts";
import { until } from "./served-platform.ts";
import { testPort } from "./test-port.ts";

const BIN = resolve(import.meta.dirname, "../../bin/rollcall.mjs");
const TEMPLATE = resolve(import.meta.dirname, "../../src/cli/templates/single-turn");

test("a change is loaded with the same state and port; a broken one is reported and changes nothing", async () => {
  const [base, directory] = [temporaryDirectory(), temporaryDirectory()];
  const folder = join(base, "letters");
  const rollcall = { environment: "./environment.ts" };
  cpSync(TEMPLATE, folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "letters", version: "0.1.0", rollcall }));
  const argv = ["serve", "--env", "./letters", "--watch", "--port", String(testPort(0))];
  const child = spawn(process.execPath, [BIN, ...argv], {
    cwd: base,
    env: { ...process.env, ROLLCALL_DIR: directory },
    stdio: ["ignore", "ignore", "pipe"],
  });
  onTestFinished(() => endOf(child));
  let said = "";
  child.stderr.on("data", (part) => {
    said += part;
  });
  const hears = (words: string) => until(() => said.includes(words), WAIT_HANGS_MS);

  await hears("Watching ");
  const before = await held(directory);
  const module = join(folder, "environment.ts");
  const good = readFileSync(module, "utf8");
  writeFileSync(module, `${good}\nexport const id = crypto.randomUUID();\n`);
  await hears("The platform continues with its current code.");
  expect(said).toMatch(/cannot be loaded in a Worker: .*global scope/);
  expect(await held(directory)).toEqual(before);

  // Like editors that write a new file and rename it over the old one.
  writeFileSync(join(folder, "environment.ts.new"), `${good}\n// edited\n`);
  renameSync(join(folder, "environment.ts.new"), module);
  await hears("Reloaded letters@0.1.0");
  const after = await held(directory);
  expect(after.digest).not.toBe(before.digest);
  expect({ ...after, digest: "" }).toEqual({ ...before, digest: "" });
});

/** The platform's address, its key, and the code of the environment that it has. */
async function held(directory: string) {
  const ready = readReadyFile(directory);
  if (ready === null) throw new Error("no platform runs");
  const { url, key } = ready;
  const { data: environments } = await new RollcallClient({ baseUrl: url, apiKey: key }).environments.list();
  return { url, key, digest: environments.find(({ id }) => id === "letters")?.digest };
}

async function endOf(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  child.kill("SIGTERM");
  await once(child, "exit");
}
