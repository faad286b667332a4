/**
 * kill -9 of a platform that loads an environment: it stops its workerd and starts another one. The platform ends itself
 * exactly before it starts the other one, or when that one exists and nothing but the lock says so.
 */
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import * as z from "zod";
import { isRunning } from "../../src/local/processes.ts";
import { makeThrowAwayDirectory, readReadyFile } from "../../src/local/state-directory.ts";
import { RollcallClient } from "../../src/sdk/client.ts";
import { startScriptedModel } from "../fakes/scripted-model.ts";
import { WAIT_HANGS_MS } from "../hang-limits.ts";
import { startArithmeticModel, TURNS } from "./arithmetic-model.ts";
import { deathOf, endGroup, type Served, serve, until } from "./served-platform.ts";
import { testPort } from "./test-port.ts";

const TEMPLATE = resolve(import.meta.dirname, "../../src/cli/templates/single-turn");
const FIXTURE = join(import.meta.dirname, "reload-kill-fixture.ts");
const BIN = join(import.meta.dirname, "../../bin/rollcall.mjs");
const ROLLOUTS = 20;
const Lock = z.object({ workerd: z.object({ pid: z.int(), started: z.string() }) });

function writeEnvironment(directory: string, id: string): string {
  const folder = join(directory, id);
  cpSync(TEMPLATE, folder, { recursive: true });
  writeFileSync(
    join(folder, "package.json"),
    JSON.stringify({ name: id, version: "0.1.0", rollcall: { environment: "./environment.ts" } }),
  );
  return folder;
}

/** A model that answers only once it is opened. */
async function startHeldModel() {
  const { promise: opened, resolve: open } = Promise.withResolvers<void>();
  const model = await startScriptedModel({
    reply: async () => {
      await opened;
      return "It is 7.";
    },
  });
  onTestFinished(() => model.stop());
  return { model, open };
}

function load({ key }: Pick<Served, "key">, directory: string, folder: string): Promise<Response> {
  return fetch(`${readReadyFile(directory)?.control_url}/environments`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify({ folder }),
  });
}

test.each([
  { moment: "before the next", orphan: false, port: testPort(0) },
  { moment: "after the next", orphan: true, port: testPort(10) },
])(
  "after kill -9 of a platform that reloads, $moment workerd starts, the next start continues all runs",
  async ({ moment, orphan, port }) => {
    const directory = makeThrowAwayDirectory();
    const letters = writeEnvironment(directory, "letters");
    const nouns = writeEnvironment(directory, "nouns");
    const arithmetic = await startArithmeticModel(0);
    const { model, open } = await startHeldModel();
    let served = await serve(directory, port, [FIXTURE, directory, String(port), moment, letters]);
    onTestFinished(async () => {
      endGroup(served);
      await deathOf(served.workerd);
      await arithmetic.stop();
      rmSync(directory, { recursive: true, force: true });
    });
    const create = (environment: string, base_url: string) => {
      const client = new RollcallClient({ baseUrl: served.url, apiKey: served.key });
      const size = { num_examples: ROLLOUTS, max_concurrent: ROLLOUTS / 2 };
      return client.runs.create({ environment, model: "m", endpoint: { base_url }, ...size });
    };

    // No call of this run is answered before the kill, and a third of the other one's are.
    const own = await create("letters", model.url);
    const builtIn = await create("calculator", arithmetic.url);
    await until(() => model.requests.length > 0 && arithmetic.answered() >= ROLLOUTS, WAIT_HANGS_MS);
    arithmetic.setLatency(WAIT_HANGS_MS);
    await until(() => arithmetic.unanswered() > 0, WAIT_HANGS_MS);

    const before = served;
    await expect(load(served, directory, nouns)).rejects.toThrow("fetch failed");
    await deathOf(before.node);
    expect(before.said()).toContain(`killed ${moment}`);
    expect(readReadyFile(directory)).toBeNull();
    const { workerd: next } = Lock.parse(JSON.parse(readFileSync(join(directory, "platform.lock"), "utf8")));
    expect([isRunning(next), isRunning(before.workerd)]).toEqual([orphan, false]);

    arithmetic.setLatency(0);
    open();
    const flags = ["--json", "--port", String(port), "--env", letters];
    served = await serve(directory, port, [BIN, "serve", ...flags]);
    expect(served.url).toBe(before.url);
    expect(served.policy).toBe(before.policy);
    expect(served.said().includes(`Ended workerd ${next.pid}, left behind by an earlier run.`)).toBe(orphan);
    expect(isRunning(next)).toBe(false);
    const client = new RollcallClient({ baseUrl: served.url, apiKey: served.key });
    for (const [{ id }, turns] of [[own, 1] as const, [builtIn, TURNS] as const]) {
      for await (const _ of client.runs.events(id, { signal: AbortSignal.timeout(WAIT_HANGS_MS) }));
      const run = await client.runs.get(id);
      expect(run).toMatchObject({ status: "completed", counts: { scored: ROLLOUTS, in_flight: 0 } });
      expect(run.report.turns).toBe(ROLLOUTS * turns);
    }
    expect(arithmetic.changed).toEqual([]);
  },
);
