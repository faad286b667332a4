/** Plays the run on a local platform that counts, and measures workerd with all rollouts in flight. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import * as z from "zod";
import { bootPlatform, type Platform } from "../../src/local/platform.ts";
import { RollcallClient } from "../../src/sdk/client.ts";
import { openFiles } from "../measure.ts";
import { MODEL } from "../workload.ts";
import { type Counts, sumOf } from "./counted.ts";
import type { Shape } from "./shape.ts";

/** They load the code. */
const FIRST: Shape = { rollouts: 48, turns: 2, turnMs: 1 };
/** Longer than a run waits before it writes its row. */
const QUIET_MS = 2000;

export interface Memory {
  /** MiB of workerd before the run, and with all rollouts in flight. */
  readonly before_mib: number;
  readonly at_once_mib: number;
  readonly kib_per_rollout: number;
  readonly open_files: number;
}

export interface Played {
  readonly counts: Counts;
  readonly memory: Memory;
  readonly seconds: { readonly until_all_in_flight: number; readonly in_all: number };
}

export async function play(shape: Shape, log: (line: string) => void): Promise<Played> {
  const platform = await bootPlatform({
    directory: null,
    log,
    // The ceiling counts five open files for each rollout. Those of this run are alike, and need fewer.
    bindings: { LIVE_OBJECT_CEILING: 0 },
    worker: {
      entry: join(import.meta.dirname, "../simulate/counting-worker.ts"),
      folder: join(import.meta.dirname, "../../dist/counting"),
    },
  });
  const [first, held] = await Promise.all([startModel(FIRST), startModel(shape)]);
  try {
    const client = new RollcallClient({ baseUrl: platform.url, apiKey: platform.key });
    for (const [name, { url }] of Object.entries({ first, held })) {
      await client.endpoints.create({ name, base_url: url });
    }
    first.letGo();
    await finish(client, "first", FIRST);
    const before = await settled(platform.url, {});
    return await measured(platform, before, { client, held, shape, log });
  } finally {
    first.stop();
    held.stop();
    await platform.stop();
  }
}

interface Stage {
  readonly client: RollcallClient;
  readonly held: Model;
  readonly shape: Shape;
  readonly log: (line: string) => void;
}

async function measured(platform: Platform, before: Counts, { client, held, shape, log }: Stage): Promise<Played> {
  const [idleMib, from] = [residentMib(platform), performance.now()];
  const full = held.allInFlight.then((): [Memory, number] => {
    const [atOnce, ms] = [residentMib(platform), performance.now() - from];
    log(`${shape.rollouts} rollouts are in flight after ${(ms / 1000).toFixed(1)} s`);
    held.letGo();
    const kib = (1024 * (atOnce - idleMib)) / shape.rollouts;
    const sizes = { before_mib: idleMib, at_once_mib: atOnce, kib_per_rollout: kib };
    return [{ ...sizes, open_files: openFiles(platform.workerdPid()) }, ms];
  });
  const [[memory, filledMs]] = await Promise.all([full, finish(client, "held", shape)]);
  const seconds = { until_all_in_flight: filledMs / 1000, in_all: (performance.now() - from) / 1000 };
  return { counts: await settled(platform.url, before), memory, seconds };
}

/** Plays the run to its end, and follows it. */
async function finish(client: RollcallClient, endpoint: string, { rollouts }: Shape): Promise<void> {
  const dataset = Array.from({ length: rollouts }, (_, at) => ({ question: `What is ${at} * 1?`, answer: "48" }));
  const { id } = await client.runs.create({
    ...{ environment: "calculator", dataset, num_examples: rollouts, max_concurrent: rollouts },
    ...{ model: MODEL, endpoint },
  });
  for await (const _event of client.runs.events(id));
  const { counts } = await client.runs.get(id);
  if (counts.scored !== rollouts) throw new Error(`${counts.scored} of ${rollouts} rollouts are scored`);
}

/** The counts since `before`, when all messages are handled and nothing more is counted. */
async function settled(url: string, before: Counts): Promise<Counts> {
  for (let earlier: Counts = {}; ; ) {
    const all = await countsOf(url);
    const handled = sumOf(all, /> queue \S+ messages$/) === sumOf(all, /^consumer \S+ messages$/);
    if (handled && isDeepStrictEqual(all, earlier)) {
      return Object.fromEntries(Object.entries(all).map(([name, count]) => [name, count - (before[name] ?? 0)]));
    }
    earlier = all;
    await pause(QUIET_MS);
  }
}

async function countsOf(url: string): Promise<Counts> {
  return z.record(z.string(), z.number()).parse(await (await fetch(`${url}/counts`)).json());
}

function residentMib(platform: Platform): number {
  const status = readFileSync(`/proc/${platform.workerdPid()}/status`, "utf8");
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024;
}

interface Model {
  readonly url: string;
  /** Resolves when all rollouts wait for their first turns. */
  readonly allInFlight: Promise<void>;
  readonly letGo: () => void;
  readonly stop: () => void;
}

const Listening = z.object({ url: z.string() });

async function startModel(shape: Shape): Promise<Model> {
  const child = fork(join(import.meta.dirname, "model-main.ts"), [JSON.stringify(shape)]);
  const failed = once(child, "exit").then(([code]): never => {
    throw new Error(`the model ended early (${code})`);
  });
  const [said] = await Promise.race([once(child, "message"), failed]);
  const all = once(child, "message").then(() => undefined);
  // It ends early only once: whoever waits for it then gets the error.
  failed.catch(() => undefined);
  return {
    url: Listening.parse(said).url,
    allInFlight: Promise.race([all, failed]),
    letGo: () => child.send("go"),
    stop: () => child.disconnect(),
  };
}
