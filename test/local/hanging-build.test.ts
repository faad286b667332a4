/** An environment whose build computes without end for some arguments, asked for by a route: nobody's run answers for it. */
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

const MODULE = `
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

const base = mkdtempSync(join(tmpdir(), "rollcall-hanging-build-"));
const answer = Promise.withResolvers<string>();
let platform: Platform;
let model: ScriptedModel;

beforeAll(async () => {
  const folder = join(base, "maze");
  mkdirSync(folder);
  const rollcall = { environment: "./environment.ts" };
  writeFileSync(
    join(folder, "package.json"),
    JSON.stringify({ name: "maze", version: "1.0.0", rollcall }),
  );
  writeFileSync(join(folder, "environment.ts"), MODULE);
  model = await startScriptedModel({ reply: () => answer.promise });
  platform = await bootPlatform({
    directory: null,
    environments: [resolveEnvironmentPackage("./maze", base)],
    port: testPort(43),
    say: (line) => process.stderr.write(`${line}\n`),
    hungAfterMs: 5000,
  });
}, 60_000);

afterAll(async () => {
  await platform.stop();
  await model.stop();
  rmSync(base, { recursive: true });
});

/** The answer, or null where the platform was ended over it. */
async function startMaze(hangs: boolean): Promise<{ status: number; body: unknown } | null> {
  const body = JSON.stringify({
    environment: "maze",
    environment_args: { hangs },
    model: "m",
    endpoint: { base_url: model.url },
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
    const up = { timeout: 30_000, interval: 100 };
    await expect.poll(() => answersHealthz(platform.url), up).toBe(true);
    return null;
  }
}

test("a build that hangs behind a route is refused after three deaths, and a run that waited meanwhile loses nothing", async () => {
  const run = z.object({ id: z.string() }).parse((await startMaze(false))?.body);
  const client = new RollcallClient({ baseUrl: platform.url, apiKey: platform.key });
  const ends = [await startMaze(true), await startMaze(true), await startMaze(true)];
  expect(ends).toEqual([null, null, null]);
  const message = expect.stringContaining("while maze was built: it is not tried again");
  expect(await startMaze(true)).toMatchObject({ status: 400, body: { error: { message } } });
  expect((await client.environment("maze")).dataset).toBe("rows");
  answer.resolve("one");
  for await (const _ of client.events(run.id));
  expect(await client.getRun(run.id)).toMatchObject({
    status: "completed",
    counts: { scored: 20 },
  });
}, 180_000);
