/**
 * `npm run bench:isolated [-- --rollouts N] [--pairs P]`: CPU time of workerd for rollouts of four turns of an
 * environment in an isolate of its own, and of the same one in the platform's isolate, in alternating pairs on one
 * platform; with 1 kB and 200 kB of state. And the CPU time of an isolate that is made for its first rollout.
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { JsonObject } from "../src/contract/json.ts";
import { bundleEnvironment } from "../src/local/environment-bundle.ts";
import { environmentPackage } from "../src/local/environment-package.ts";
import { bootPlatform } from "../src/local/platform.ts";
import { readReadyFile } from "../src/local/state-directory.ts";
import { RollcallClient } from "../src/sdk/client.ts";
import { pack } from "../test/hub/packages.ts";
import { describeMachine } from "./machine.ts";
import { Meter } from "./measure.ts";
import { startModel, stopAll } from "./processes.ts";
import { IN_FLIGHT, MODEL } from "./workload.ts";

const TURNS = 4;
const STATES = { "1 kB": 1000, "200 kB": 200_000 };
/** Organisations share no isolates, so each of these has its own. */
const COLD = 20;
const HELD_STATE = join(import.meta.dirname, "held-state");

const { values } = parseArgs({
  options: { rollouts: { type: "string", default: "400" }, pairs: { type: "string", default: "5" } },
});
const [rollouts, pairs] = [Number(values.rollouts), Number(values.pairs)];

const platform = await bootPlatform({
  directory: null,
  log: (line) => process.stderr.write(`${line}\n`),
  environments: [environmentPackage(HELD_STATE)],
});
const model = await startModel(TURNS);
const workerd = readReadyFile(platform.directory)?.workerd_pid ?? 0;

interface Play {
  readonly client: RollcallClient;
  readonly environment: string;
  readonly args: JsonObject;
  readonly rollouts: number;
}

/** Milliseconds of workerd's CPU for each rollout. */
async function cpuOf({ client, environment, args, rollouts: count }: Play): Promise<number> {
  const meter = new Meter({ workerd });
  const { id } = await client.runs.create({
    ...{ environment, environment_args: args, model: MODEL, endpoint: { base_url: model.url } },
    ...{ num_examples: count, max_concurrent: IN_FLIGHT },
  });
  for await (const _event of client.runs.events(id));
  const { workerd: seconds = 0 } = meter.stop().cpuSeconds;
  const { counts, report } = await client.runs.get(id);
  if (counts.scored !== count || report.turns !== count * TURNS) throw new Error(JSON.stringify(counts));
  return (1000 * seconds) / count;
}

async function pairsOf(client: RollcallClient, args: JsonObject, count: number) {
  const play = async (environment: string) => await cpuOf({ client, environment, args, rollouts: count });
  const [here, there] = ["held-state", "bench/held-state"] as const;
  for (const environment of [here, there]) await play(environment);
  const measured: { in_process: number; isolated: number; ratio: number }[] = [];
  for (let pair = 0; pair < pairs; pair += 1) {
    const order = pair % 2 === 0 ? [here, there] : [there, here];
    const [one = 0, other = 0] = [await play(order[0] ?? here), await play(order[1] ?? there)];
    const [in_process, isolated] = pair % 2 === 0 ? [one, other] : [other, one];
    measured.push({ in_process, isolated, ratio: isolated / in_process });
  }
  return { median: medianOf(measured.map(({ ratio }) => ratio)), measured };
}

/** Milliseconds of the first rollout in an isolate beyond those of the second. */
async function coldOf(admin: RollcallClient): Promise<number> {
  const spent = { first: 0, second: 0 };
  for (let at = 0; at < COLD; at += 1) {
    const { key } = await admin.organizations.create({ name: `cold ${at}` });
    const client = new RollcallClient({ baseUrl: platform.url, apiKey: key.key ?? "", project: "default" });
    const play = { client, environment: "bench/held-state", args: { state_bytes: 1000 }, rollouts: 1 };
    spent.first += await cpuOf(play);
    spent.second += await cpuOf(play);
  }
  return (spent.first - spent.second) / COLD;
}

function medianOf(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN;
}

try {
  const client = new RollcallClient({ baseUrl: platform.url, apiKey: platform.key });
  const { text: code } = await bundleEnvironment(join(HELD_STATE, "environment.ts"));
  const manifest = { rollcall: { args: { state_bytes: 1000 } } };
  const bytes = await pack({ name: "bench/held-state", version: "1.0.0", code, manifest });
  await client.environments.publish(bytes, { visibility: "public", allowFailing: true });
  const states: Record<string, unknown> = {};
  for (const [name, state_bytes] of Object.entries(STATES)) {
    states[name] = await pairsOf(client, { state_bytes }, state_bytes > 10_000 ? Math.ceil(rollouts / 4) : rollouts);
  }
  const cold_isolate_ms = await coldOf(client);
  process.stdout.write(`${JSON.stringify({ machine: describeMachine(), states, cold_isolate_ms }, null, 1)}\n`);
} finally {
  await stopAll();
  await platform.stop();
}
