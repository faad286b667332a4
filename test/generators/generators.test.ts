/** Clients that other projects' generators make from /openapi.json, compiled and used against a local platform. */
import { mkdtempSync, writeFileSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { bootPlatform, type Platform } from "../../src/local/platform.ts";
import { type ScriptedModel, startScriptedModel } from "../fakes/scripted-model.ts";
import { testPort } from "../local/test-port.ts";
import { cacheFolder, pythonVenv, run } from "../python/python-venv.ts";

const HERE = import.meta.dirname;
const MODULES = join(HERE, "../../node_modules");
const OPENAPI_TYPESCRIPT = "openapi-typescript@7.13.0";

let platform: Platform;
let model: ScriptedModel;
const folder = mkdtempSync(join(tmpdir(), "rollcall-generators-"));
const document = join(folder, "openapi.json");

beforeAll(async () => {
  model = await startScriptedModel({ reply: () => "It is 7." });
  const log = (line: string) => process.stderr.write(`${line}\n`);
  platform = await bootPlatform({ directory: null, port: testPort(36), log });
  writeFileSync(document, await (await fetch(`${platform.url}/openapi.json`)).text());
});
afterAll(async () => {
  await platform.stop();
  await model.stop();
  await rm(folder, { recursive: true });
});

test("openapi-python-client makes a client that imports completely, creates, reads, lists and streams", async ({
  skip,
}) => {
  const requirements = join(HERE, "requirements.txt");
  const venv = await pythonVenv("generators", requirements, "ROLLCALL_GENERATORS_VENV");
  if (venv === null) return skip();
  const package_ = join(folder, "rollcall_client");
  const config = join(HERE, "openapi-python-client.yaml");
  const options = ["--output-path", package_, "--meta", "none", "--config", config];
  const env = { ...process.env, PATH: `${dirname(venv.python)}${delimiter}${process.env["PATH"]}` };
  const generate = ["generate", "--path", document, ...options, "--fail-on-warning"];
  await run(venv.script("openapi-python-client"), generate, { env });
  const use = [join(HERE, "use_client.py"), folder, platform.url, platform.key, model.url];
  const used = JSON.parse(await run(venv.python, use));
  expect(used).toMatchObject({
    status: "completed",
    scored: 2,
    ended: "completed",
    listed: [true],
    refused: "not_found",
    training: { kind: "training", environment: "calculator", max_steps: 1 },
  });
  expect(used.modules).toBeGreaterThan(200);
  expect(used.rows.length).toBe(2);
  expect(used.interval.length).toBe(2);
  expect(used.environments).toContain("calculator");
  expect(used.events.at(-1)).toBe("run.completed");
});

test("openapi-typescript makes types whose requests may omit fields with defaults", async () => {
  const types = join(folder, "rollcall.ts");
  const generator = await npmTool(OPENAPI_TYPESCRIPT);
  await run(process.execPath, [generator, document, "-o", types, "--default-non-nullable=false"]);
  const use = join(folder, "use.ts");
  writeFileSync(use, USE);
  const strict = ["--strict", "--noEmit", "--skipLibCheck", "--target", "esnext"];
  const compile = [join(MODULES, "typescript/bin/tsc"), ...strict, types, use];
  await run(process.execPath, compile, { cwd: folder });
});

const USE = `
import type { components, paths } from "./rollcall";
type Schemas = components["schemas"];
const endpoint: Schemas["InlineEndpoint"] = { base_url: "http://x/v1" };
const small: Schemas["RunRequest"] = { environment: "gsm8k", model: "m", endpoint };
const step: Schemas["RunRequest"] = { kind: "training", environment: "gsm8k", model: "m", endpoint, max_steps: 1 };
type Body = paths["/v1/runs"]["post"]["requestBody"]["content"]["application/json"];
export const bodies: Body[] = [small, step];
// @ts-expect-error a model is not left out
export const lacking: Body = { environment: "gsm8k", endpoint };
export const interval = (run: Schemas["Run"]): [number, number] | null => run.report.reward.ci95;
export const last = (event: Schemas["RunEvent"]) => event.event === "batch.acked" && event.data.produced_version;
`;

/** The program of a package at one version, installed once in the user's cache folder. */
async function npmTool(wanted: string): Promise<string> {
  const place = join(cacheFolder(), wanted);
  const typescript = "typescript@5.9.3";
  await mkdir(place, { recursive: true });
  const install = ["install", "--prefix", place, "--no-audit", "--no-fund", "--prefer-offline"];
  await run("npm", [...install, wanted, typescript]);
  return join(place, "node_modules", wanted.split("@")[0] ?? "", "bin/cli.js");
}
