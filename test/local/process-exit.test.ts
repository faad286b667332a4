/**
 * Environments that would end their process, however their code comes by `exit`: in a Worker that ends nothing but the call, so
 * that whoever waits would wait for ever. On a platform whose bundle holds such an environment.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { resolveEnvironmentPackage } from "../../src/local/environment-package.ts";
import { bootPlatform, type Platform } from "../../src/local/platform.ts";
import { RollcallClient } from "../../src/sdk/client.ts";
import { type ScriptedModel, startScriptedModel } from "../fakes/scripted-model.ts";
import { testPort } from "./test-port.ts";

const WAYS = [
  ...["imported", "imported whole", "imported all", "bare", "required", "imported late"],
  ...["as a built-in", "abort", "row"],
] as const;

const MODULE = `
import { abort, exit } from "node:process";
import whole from "node:process";
import * as all from "node:process";
import { exit as bare } from "process";
import { dataset, defineEnvironment, MultiTurnEnv } from "rollcall";
import { env } from "./required.cjs";
import * as z from "zod";

const WAYS = ${JSON.stringify(WAYS)};
const leave = async (way) => {
  if (way === "imported") exit(1);
  if (way === "imported whole") whole.exit(1);
  if (way === "imported all") all.exit(1);
  if (way === "bare") bare(1);
  if (way === "required") env.leave();
  if (way === "imported late") (await import("node:process")).exit(1);
  if (way === "as a built-in") process.getBuiltinModule("node:process").exit(1);
  if (way === "abort") abort();
};
const make = (index) => {
  if (WAYS[index] === "row") exit(1);
  return { question: "Which way?", way: WAYS[index] };
};
export const loadEnvironment = defineEnvironment({
  args: z.strictObject({ leaves: z.boolean().default(false) }),
  build: ({ leaves }) => {
    if (leaves) exit(1);
    return new MultiTurnEnv({
      dataset: dataset(z.object({ question: z.string(), way: z.string() }), { length: WAYS.length, row: make }),
      maxTurns: 1,
      envResponse: () => "Go on.",
      setupState: async ({ task }) => {
        await leave(task.way);
        return {};
      },
      rubric: { rewards: { one: () => 1 } },
    });
  },
});
`;
const REQUIRED = `
const process = require("node:process");
exports.env = { leave: () => process.exit(1) };
`;

const base = mkdtempSync(join(tmpdir(), "rollcall-exits-"));
let platform: Platform;
let model: ScriptedModel;

beforeAll(async () => {
  const folder = join(base, "leaver");
  mkdirSync(folder);
  const rollcall = { environment: "./environment.ts" };
  const manifest = { name: "leaver", version: "1.0.0", rollcall };
  writeFileSync(join(folder, "package.json"), JSON.stringify(manifest));
  writeFileSync(join(folder, "environment.ts"), MODULE);
  writeFileSync(join(folder, "required.cjs"), REQUIRED);
  model = await startScriptedModel({ reply: () => "That way." });
  platform = await bootPlatform({
    directory: null,
    environments: [resolveEnvironmentPackage("./leaver", base)],
    port: testPort(42),
    say: (line) => process.stderr.write(`${line}\n`),
  });
}, 60_000);

afterAll(async () => {
  await platform.stop();
  await model.stop();
  rmSync(base, { recursive: true });
});

test("a hook or a row that calls exit, however it comes by it, fails its own rollout and says so", async () => {
  const client = new RollcallClient({ baseUrl: platform.url, apiKey: platform.key });
  const run = await client.createRun({
    environment: "leaver",
    model: "m",
    endpoint: { base_url: model.url },
    min_scored: 0,
    limits: { setup_timeout_s: 5 },
  });
  for await (const _ of client.events(run.id));
  const said = new Map<unknown, string>();
  for await (const { example_id, error } of client.results(run.id)) {
    said.set(WAYS[Number(example_id)], String(error?.message));
  }
  for (const way of WAYS) {
    const name = way === "abort" ? "abort" : "exit";
    expect(said.get(way), way).toContain(`process.${name} was called`);
  }
}, 60_000);

test("an environment whose build calls exit is refused, and says so", async () => {
  const client = new RollcallClient({ baseUrl: platform.url, apiKey: platform.key });
  const request = {
    environment: "leaver",
    environment_args: { leaves: true },
    model: "m",
    endpoint: { base_url: model.url },
  };
  await expect(client.createRun(request)).rejects.toThrow(/process\.exit was called/);
}, 60_000);
