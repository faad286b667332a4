/**
 * Code of an environment that stops the whole process: it computes without end, or it takes the process down. The
 * platform ends what hangs, starts again, finds the one it was, and everybody else's work goes on. Real processes: the
 * bundle that deploys, its workerd, and what watches it.
 */
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import type { ResultRow, RunView } from "../../src/core/run.ts";
import { resolveEnvironmentPackage } from "../../src/local/environment-package.ts";
import { bootPlatform, type Platform } from "../../src/local/platform.ts";
import { RollcallClient } from "../../src/sdk/client.ts";
import { type ScriptedModel, startScriptedModel } from "../fakes/scripted-model.ts";
import { testPort } from "./test-port.ts";

vi.setConfig({ testTimeout: 120_000 });

const ENVIRONMENT = resolve(import.meta.dirname, "poison/environment.ts");
const undo: (() => void | Promise<void>)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

interface Poisoned {
  readonly platform: Platform;
  readonly said: string[];
  readonly run: RunView;
  readonly results: ResultRow[];
  readonly model: ScriptedModel;
}

/** A run of `examples` tasks, of which some are poisoned, played to its end. */
async function play(
  poisons: Readonly<Record<string, string>>,
  examples: number,
  port: number,
): Promise<Poisoned> {
  const base = mkdtempSync(join(tmpdir(), "rollcall-poison-"));
  undo.push(() => rmSync(base, { recursive: true }));
  mkdirSync(join(base, "poison"));
  cpSync(ENVIRONMENT, join(base, "poison/environment.ts"));
  const rollcall = { environment: "./environment.ts" };
  const manifest = { name: "poison", version: "0.1.0", rollcall };
  writeFileSync(join(base, "poison/package.json"), JSON.stringify(manifest));
  const model = await startScriptedModel({ reply: () => ({ content: "said" }) });
  undo.push(() => model.stop());
  const desk = await slowDesk();
  undo.push(() => new Promise<void>((done) => desk.close(() => done())));
  const said: string[] = [];
  const platform = await bootPlatform({
    directory: null,
    environments: [resolveEnvironmentPackage("./poison", base)],
    port: testPort(port),
    say: (line) => {
      said.push(line);
    },
    hungAfterMs: 6000,
  });
  undo.push(() => platform.stop());
  const { port: deskPort } = desk.address() as AddressInfo;
  const client = new RollcallClient({ baseUrl: platform.url, apiKey: platform.key });
  const { id } = await client.createRun({
    environment: "poison",
    environment_args: { poisons, desk: `http://127.0.0.1:${deskPort}/` },
    num_examples: examples,
    rollouts_per_example: 1,
    max_concurrent: examples,
    min_scored: 0,
    model: "m",
    endpoint: { base_url: model.url, api_key: "sk-none" },
  });
  const run = await ended(client, id);
  const results: ResultRow[] = [];
  for await (const row of client.results(id)) results.push(row);
  return { platform, said, run, results, model };
}

/** Answers after half a second. */
async function slowDesk(): Promise<Server> {
  const server = createServer((_request, response) => {
    setTimeout(() => response.end("{}"), 500);
  });
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return server;
}

/** Asks again whatever happens to the platform meanwhile. */
async function ended(client: RollcallClient, id: string): Promise<RunView> {
  let run: RunView | null = null;
  await expect
    .poll(
      async () => {
        run = await client.getRun(id).catch(() => null);
        return run?.status ?? "away";
      },
      { timeout: 100_000, interval: 200 },
    )
    .toMatch(/completed|failed|cancelled/);
  if (run === null) throw new Error("the run is gone");
  return run;
}

/** By example: how each rollout without a score ended, and why. */
function without({ results }: Poisoned): Record<number, { reason: string; why: string }> {
  const rows = results.filter(({ outcome }) => outcome !== "scored");
  return Object.fromEntries(
    rows.map(({ example_id, outcome, reason, error, scoring_errors }) => {
      const why = error?.message ?? scoring_errors.map((failure) => failure.error).join();
      return [example_id, { reason: `${outcome}: ${reason}`, why }];
    }),
  );
}

const again = (during: string) =>
  expect.stringContaining(`or hung until it was ended, 3 times while ${during}`);

test("a hook that never returns ends its own rollout, and 500 that were waiting in theirs are scored", async () => {
  const played = await play({ 123: "setup" }, 501, 0);
  expect(played.run).toMatchObject({ status: "completed", counts: { scored: 500 } });
  expect(without(played)).toEqual({
    123: { reason: "failed: environment", why: again("its environment set it up, 0 turns in") },
  });
  const ends = played.said.filter((line) => line.includes("answered nothing for 6 s"));
  expect(ends).toHaveLength(3);
});

test("a hook that takes the process down, and a score that never comes, end theirs and no other", async () => {
  const played = await play({ 2: "crash", 5: "score" }, 20, 8);
  expect(played.run).toMatchObject({ status: "completed", counts: { scored: 18 } });
  expect(without(played)).toEqual({
    2: { reason: "failed: environment", why: again("its environment set it up, 0 turns in") },
    5: { reason: "unscored: scorer", why: again("it was scored") },
  });
});

test("so do a row that cannot be made and a hook that goes on for ever after the outside has answered", async () => {
  const played = await play({ 3: "row", 7: "fetched" }, 20, 16);
  expect(played.run).toMatchObject({ status: "completed", counts: { scored: 18 } });
  expect(without(played)).toEqual({
    3: { reason: "failed: environment", why: again("its task was made") },
    7: { reason: "failed: environment", why: again("its environment set it up, 0 turns in") },
  });
});

test("so do tools that are never said", async () => {
  const played = await play({ 3: "tools" }, 20, 24);
  expect(played.run).toMatchObject({ status: "completed", counts: { scored: 19 } });
  expect(without(played)).toEqual({
    3: { reason: "failed: environment", why: again("its environment replied, 0 turns in") },
  });
});
