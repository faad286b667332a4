/**
 * `npm run bench:cancel`: cancels a run while all of its rollouts wait for the model and three readers read it.
 * Measures from the request: when it was answered, when the calls were closed, when everything had ended, and how long
 * the readers waited meanwhile; for comparison, the same readers a second before. With --json, prints one object to
 * stdout.
 */
import { parseArgs } from "node:util";
import { RollcallClient } from "../src/sdk/client.ts";
import { type ModelRequest, startScriptedModel } from "../test/fakes/scripted-model.ts";
import { describeMachine, describeVersions } from "./machine.ts";
import { startPlatform, stopAll } from "./processes.ts";

const HELP = `Usage: npm run bench:cancel -- [flags]

      --rollouts N   in flight when the run is cancelled; default 1000
      --json         print {machine, versions, row}
`;
const LOOK_EVERY_MS = 10;
const READ_EVERY_MS = 20;
const QUIET_MS = 1000;

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

async function until(holds: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await holds())) await pause(LOOK_EVERY_MS);
}

interface Readers {
  /** The longest wait since the last call of this function, in milliseconds. */
  readonly worst: () => number;
  readonly stop: () => Promise<void>;
}

function startReaders(paths: readonly string[], url: string, key: string): Readers {
  const headers = { authorization: `Bearer ${key}` };
  let goes = true;
  let longest = 0;
  const read = async (path: string) => {
    while (goes) {
      const asked = performance.now();
      const reply = await fetch(url + path, { headers });
      await reply.text();
      if (!reply.ok) throw new Error(`GET ${path}: ${reply.status}`);
      longest = Math.max(longest, performance.now() - asked);
      await pause(READ_EVERY_MS);
    }
  };
  const reading = Promise.all(paths.map(read));
  return {
    worst: () => {
      const worst = longest;
      longest = 0;
      return Math.round(worst);
    },
    stop: async () => {
      goes = false;
      await reading;
    },
  };
}

async function measure(rollouts: number) {
  const calls: ModelRequest[] = [];
  const model = await startScriptedModel({
    reply: (request) => {
      calls.push(request);
      // The first request is the probe of an endpoint that is added.
      return request.headers["idempotency-key"] === undefined ? { content: "hi" } : { fault: { kind: "hang" } };
    },
  });
  const waiting = () => calls.filter(({ headers, gone }) => headers["idempotency-key"] !== undefined && !gone()).length;
  const { url, key } = await startPlatform();
  const client = new RollcallClient({ baseUrl: url, apiKey: key });
  const run = await client.runs.create({
    environment: "guess-number",
    model: "bench",
    endpoint: { base_url: model.url, api_key: "EMPTY" },
    num_examples: rollouts,
    max_concurrent: rollouts,
  });
  await until(() => waiting() === rollouts);
  const path = `/v1/runs/${run.id}`;
  const readers = startReaders([path, `${path}/results`, `${path}/rollouts`], url, key);
  await pause(QUIET_MS);
  const read_before_ms = readers.worst();
  const began = performance.now();
  const since = () => Math.round(performance.now() - began);
  const answered = client.runs.cancel(run.id).then(since);
  const half = until(() => waiting() <= rollouts / 2).then(since);
  const all = until(() => waiting() === 0).then(since);
  const ended = until(async () => (await client.runs.get(run.id)).status === "cancelled").then(since);
  const row = {
    rollouts,
    answered_ms: await answered,
    half_hung_up_ms: await half,
    all_hung_up_ms: await all,
    ended_ms: await ended,
    worst_read_ms: readers.worst(),
    read_before_ms,
  };
  await readers.stop();
  await stopAll();
  await model.stop();
  return row;
}

const { values } = parseArgs({
  options: {
    help: { type: "boolean", short: "h" },
    rollouts: { type: "string", default: "1000" },
    json: { type: "boolean", default: false },
  },
});
if (values.help) {
  process.stdout.write(HELP);
} else {
  const row = await measure(Number(values.rollouts));
  const report = { machine: describeMachine(), versions: describeVersions(), row };
  const lines = Object.entries(row).map(([name, value]) => `${name.padEnd(16)} ${value}\n`);
  process.stdout.write(values.json ? `${JSON.stringify(report)}\n` : lines.join(""));
}
