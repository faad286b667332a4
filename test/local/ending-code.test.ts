/**
 * Environments whose code would end its process, or never ends, on a platform whose bundle contains both. In a Worker,
 * `exit` would only end the current call, so a caller would wait forever. A build that computes without end and is
 * requested by a route belongs to no run, so no run ends because of it.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import * as z from "zod";
import { resolveEnvironmentPackage } from "../../src/local/environment-package.ts";
import { answersHealthz } from "../../src/local/healthz.ts";
import { bootPlatform, type Platform } from "../../src/local/platform.ts";
import { RollcallClient } from "../../src/sdk/client.ts";
import { type ScriptedModel, startScriptedModel } from "../fakes/scripted-model.ts";
import { testPort } from "./test-port.ts";

/** On a busy machine, a computing process may wait this long before each death. */
const HANGS_MS = 600_000;

const WAYS = [
  ...["imported", "imported whole", "imported all", "bare", "required", "imported late"],
  ...["as a built-in", "abort", "row"],
] as const;

const LEAVER = `
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

const MAZE = `
import { dataset, defineEnvironment, SingleTurnEnv } from "rollcall";
import * as z from "zod";
export const loadEnvironment = defineEnvironment({
  args: z.strictObject({ hangs: z.boolean().default(false) }),
  build: ({ hangs }) => {
    const rows = Array.from({ length: 20 }, (_, n) => ({ question: String(n) }));
    for (let n = 0; hangs && n < Number.POSITIVE_INFINITY; n += 1) if (n < 0) break;
    return new SingleTurnEnv({
      dataset: dataset(z.object({ question: z.string() }), rows),
      rubric: { rewards: { one: () => 1 } },
    });
  },
});
`;

const base = mkdtempSync(join(tmpdir(), "rollcall-ending-code-"));
const answer = Promise.withResolvers<string>();
let platform: Platform;
let client: RollcallClient;
let model: ScriptedModel;
/** Answers only once `answer` is set. */
let slowModel: ScriptedModel;

function writeEnvironment(id: string, module: string) {
  const folder = join(base, id);
  mkdirSync(folder);
  const rollcall = { environment: "./environment.ts" };
  const manifest = { name: id, version: "1.0.0", rollcall };
  writeFileSync(join(folder, "package.json"), JSON.stringify(manifest));
  writeFileSync(join(folder, "environment.ts"), module);
  writeFileSync(join(folder, "required.cjs"), REQUIRED);
  return resolveEnvironmentPackage(`./${id}`, base);
}

beforeAll(async () => {
  const environments = [writeEnvironment("leaver", LEAVER), writeEnvironment("maze", MAZE)];
  model = await startScriptedModel({ reply: () => "That way." });
  slowModel = await startScriptedModel({ reply: () => answer.promise });
  platform = await bootPlatform({
    directory: null,
    environments,
    port: testPort(42),
    log: () => undefined,
    hungAfterMs: 3000,
  });
  client = new RollcallClient({ baseUrl: platform.url, apiKey: platform.key });
});

afterAll(async () => {
  await platform.stop();
  await model.stop();
  await slowModel.stop();
  rmSync(base, { recursive: true });
});

test("a hook or a row that calls exit in any way fails its own rollout with a message", async () => {
  const run = await client.runs.create({
    environment: "leaver",
    model: "m",
    endpoint: { base_url: model.url },
    min_scored: 0,
    limits: { setup_timeout_s: 5 },
  });
  for await (const _ of client.runs.events(run.id));
  const said = new Map<unknown, string>();
  for await (const { example_id, error } of client.runs.results(run.id)) {
    said.set(WAYS[Number(example_id)], String(error?.message));
  }
  for (const way of WAYS) {
    const name = way === "abort" ? "abort" : "exit";
    expect(said.get(way), way).toContain(`process.${name} was called`);
  }
});

test("an environment whose build calls exit is refused with a message", async () => {
  const request = {
    environment: "leaver",
    environment_args: { leaves: true },
    model: "m",
    endpoint: { base_url: model.url },
  };
  await expect(client.runs.create(request)).rejects.toThrow(/process\.exit was called/);
});

/** The answer, or null if the platform was ended during the request. */
async function startMaze(hangs: boolean): Promise<{ status: number; body: unknown } | null> {
  const body = JSON.stringify({
    environment: "maze",
    environment_args: { hangs },
    model: "m",
    endpoint: { base_url: slowModel.url },
  });
  const headers = {
    authorization: `Bearer ${platform.key}`,
    "content-type": "application/json",
  };
  try {
    const reply = await fetch(`${platform.url}/v1/runs`, { method: "POST", headers, body });
    return { status: reply.status, body: await reply.json() };
  } catch (thrown) {
    expect(thrown).toBeInstanceOf(TypeError);
    const up = { timeout: HANGS_MS, interval: 100 };
    await expect.poll(() => answersHealthz(platform.url), up).toBe(true);
    return null;
  }
}

test(
  "a build that hangs behind a route is refused after three deaths, and a waiting run loses nothing",
  async () => {
    const run = z.object({ id: z.string() }).parse((await startMaze(false))?.body);
    const ends = [await startMaze(true), await startMaze(true), await startMaze(true)];
    expect(ends).toEqual([null, null, null]);
    const message = expect.stringContaining("building maze crashed or hung the platform several times");
    expect(await startMaze(true)).toMatchObject({ status: 400, body: { error: { message } } });
    expect((await client.environments.get("maze")).dataset).toBe("rows");
    answer.resolve("one");
    for await (const _ of client.runs.events(run.id));
    expect(await client.runs.get(run.id)).toMatchObject({
      status: "completed",
      counts: { scored: 20 },
    });
  },
  HANGS_MS,
);
