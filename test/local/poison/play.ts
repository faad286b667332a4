/** A run in which some rollouts stop the process, on a separate platform that watches for it. */
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect } from "vitest";
import type { ResultRow, RunView } from "../../../src/contract/run.ts";
import { bundleEnvironment } from "../../../src/local/environment-bundle.ts";
import { resolveEnvironmentPackage } from "../../../src/local/environment-package.ts";
import { healthOf } from "../../../src/local/healthz.ts";
import { bootPlatform, type Platform } from "../../../src/local/platform.ts";
import { makeThrowAwayDirectory } from "../../../src/local/state-directory.ts";
import { RollcallClient } from "../../../src/sdk/client.ts";
import { isBrokenConnection } from "../../../src/sdk/transport.ts";
import { type ScriptedModel, startScriptedModel } from "../../fakes/scripted-model.ts";
import { pack } from "../../hub/packages.ts";
import { testPort } from "../test-port.ts";

const ENVIRONMENT = join(import.meta.dirname, "environment.ts");
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

/** Plays a run of `examples` tasks, some of them poisoned, to its end. `isolated`: in isolates of its own. */
export async function play(
  poisons: Readonly<Record<string, string>>,
  examples: number,
  port: number,
  hungAfterMs?: number,
  isolated = false,
): Promise<Poisoned> {
  const stage = await openStage(port, hungAfterMs, isolated);
  const platform = await stage.boot();
  const environment = isolated ? await publishPoison(platform, stage) : "poison";
  const id = await startRun(stage, platform, environment, poisons, examples);
  return await playedOut(stage, platform, id);
}

/** The same, but the platform is stopped as soon as it hangs, and another one continues in its directory. */
export async function playAgain(
  poisons: Readonly<Record<string, string>>,
  examples: number,
  port: number,
): Promise<Poisoned> {
  const stage = await openStage(port);
  const first = await stage.boot();
  const id = await startRun(stage, first, "poison", poisons, examples);
  const silent = async () => (await healthOf(first.url)) === "silent";
  await expect.poll(silent, { timeout: 60_000, interval: 200 }).toBe(true);
  await first.stop();
  return await playedOut(stage, await stage.boot(), id);
}

interface Stage {
  readonly said: string[];
  readonly model: ScriptedModel;
  readonly desk: string;
  /** Boots a platform, always on the same directory. */
  readonly boot: () => Promise<Platform>;
}

async function openStage(port: number, hungAfterMs = 6000, isolated = false): Promise<Stage> {
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
  const { port: deskPort } = desk.address() as AddressInfo;
  const directory = makeThrowAwayDirectory();
  undo.push(() => rmSync(directory, { recursive: true }));
  const said: string[] = [];
  const environments = isolated ? [] : [resolveEnvironmentPackage("./poison", base)];
  const boot = async () => {
    const platform = await bootPlatform({
      directory,
      environments,
      port: testPort(port),
      log: (line) => {
        said.push(line);
      },
      hungAfterMs,
    });
    undo.push(() => platform.stop());
    return platform;
  };
  return { said, model, desk: `http://127.0.0.1:${deskPort}/`, boot };
}

/** Published code plays in isolates of its own. */
async function publishPoison({ url, key }: Platform, { desk }: Stage): Promise<string> {
  const { text: code } = await bundleEnvironment(ENVIRONMENT);
  const manifest = { rollcall: { args: { poisons: {}, desk } } };
  const bytes = await pack({ name: "tests/poison", version: "0.1.0", code, manifest });
  const client = new RollcallClient({ baseUrl: url, apiKey: key });
  return (await client.environments.publish(bytes)).name;
}

/** A rollout may stop the process before the run's creation is answered, so the run has one idempotency key. */
async function startRun(
  { model, desk }: Stage,
  { url, key }: Platform,
  environment: string,
  poisons: Readonly<Record<string, string>>,
  examples: number,
): Promise<string> {
  const client = new RollcallClient({ baseUrl: url, apiKey: key });
  const request = {
    environment,
    environment_args: { poisons, desk },
    num_examples: examples,
    rollouts_per_example: 1,
    max_concurrent: examples,
    min_scored: 0,
    model: "m",
    endpoint: { base_url: model.url, api_key: "sk-none" },
  };
  let refused: unknown;
  for (const end = Date.now() + 300_000; Date.now() < end; ) {
    try {
      return (await client.runs.create(request, { idempotencyKey: "poisoned" })).id;
    } catch (error) {
      if (!isBrokenConnection(error)) throw error;
      refused = error;
    }
  }
  throw refused;
}

async function playedOut({ said, model }: Stage, platform: Platform, id: string): Promise<Poisoned> {
  const client = new RollcallClient({ baseUrl: platform.url, apiKey: platform.key });
  const run = await ended(client, id);
  const results: ResultRow[] = [];
  for await (const row of client.runs.results(id)) results.push(row);
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

/** Asks again, whatever happens to the platform meanwhile. */
async function ended(client: RollcallClient, id: string): Promise<RunView> {
  let run: RunView | null = null;
  await expect
    .poll(
      async () => {
        run = await client.runs.get(id).catch(() => null);
        return run?.status ?? "away";
      },
      { timeout: 580_000, interval: 200 },
    )
    .toMatch(/completed|failed|cancelled/);
  if (run === null) throw new Error("the run is gone");
  return run;
}

/** By example: how each rollout without a score ended, and why. */
export function without({ results }: Poisoned): Record<number, { reason: string; why: string }> {
  const rows = results.filter(({ outcome }) => outcome !== "scored");
  return Object.fromEntries(
    rows.map(({ example_id, outcome, reason, error, scoring_errors }) => {
      const why = error?.message ?? scoring_errors.map((failure) => failure.error).join();
      return [example_id, { reason: `${outcome}: ${reason}`, why }];
    }),
  );
}

export const again = (during: string) => expect.stringContaining(`crashed or hung 3 times while ${during}`);
