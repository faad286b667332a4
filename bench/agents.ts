/**
 * `npm run bench:agents [-- --rollouts N] [--pairs P] [--in-flight N]`: CPU time of workerd for a turn that an agent makes
 * through the address of its rollout, in each wire form, and for a turn of the platform's own loop, in alternating
 * pairs on one platform. All rollouts have four turns, and the agent leases, calls and ends as a worker does.
 */
import { Agent, request as send } from "node:http";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { JsonObject } from "../src/contract/json.ts";
import { environmentPackage } from "../src/local/environment-package.ts";
import { bootPlatform } from "../src/local/platform.ts";
import { readReadyFile } from "../src/local/state-directory.ts";
import { type LeasedRollout, RollcallClient } from "../src/sdk/client.ts";
import { describeMachine } from "./machine.ts";
import { Meter } from "./measure.ts";
import { startModel, stopAll } from "./processes.ts";
import { MODEL } from "./workload.ts";

const TURNS = 4;
const FORMS = ["chat", "chat stream", "responses", "responses stream", "messages", "messages stream"] as const;
const HELD_STATE = join(import.meta.dirname, "held-state");
const LEASED_AT_ONCE = 64;

const { values } = parseArgs({
  options: {
    rollouts: { type: "string", default: "400" },
    pairs: { type: "string", default: "3" },
    "in-flight": { type: "string", default: "100" },
  },
});
const [rollouts, pairs, inFlight] = [Number(values.rollouts), Number(values.pairs), Number(values["in-flight"])];

const platform = await bootPlatform({
  directory: null,
  log: (line) => process.stderr.write(`${line}\n`),
  environments: [environmentPackage(HELD_STATE)],
});
const model = await startModel(TURNS);
const workerd = readReadyFile(platform.directory)?.workerd_pid ?? 0;
const client = new RollcallClient({ baseUrl: platform.url, apiKey: platform.key });
const connections = new Agent({ keepAlive: true, maxSockets: inFlight });

/** The body of one call in this form. */
function bodyOf(form: (typeof FORMS)[number], messages: readonly JsonObject[]): { path: string; body: JsonObject } {
  const stream = form.endsWith("stream");
  if (form.startsWith("chat"))
    return { path: "/v1/chat/completions", body: { model: MODEL, messages: [...messages], stream } };
  if (form.startsWith("responses"))
    return { path: "/v1/responses", body: { model: MODEL, input: [...messages], stream } };
  return { path: "/v1/messages", body: { model: MODEL, max_tokens: 64, messages: [...messages], stream } };
}

/** The least that a client does, so that the machine's time is the platform's. */
async function post(url: string, key: string, body: JsonObject): Promise<string> {
  const text = JSON.stringify(body);
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  return await new Promise((resolve, reject) => {
    const call = send(url, { method: "POST", agent: connections, headers }, (reply) => {
      const chunks: Buffer[] = [];
      reply.on("data", (chunk: Buffer) => chunks.push(chunk));
      reply.on("error", reject);
      reply.on("end", () => {
        const answer = Buffer.concat(chunks).toString();
        if (reply.statusCode === 200) resolve(answer);
        else reject(new Error(`${reply.statusCode}: ${answer}`));
      });
    });
    call.on("error", reject);
    call.end(text);
  });
}

async function playOne(rollout: LeasedRollout, form: (typeof FORMS)[number]): Promise<void> {
  const messages: JsonObject[] = [{ role: "user", content: "Count to four." }];
  for (let turn = 0; turn < TURNS; turn += 1) {
    const { path, body } = bodyOf(form, messages);
    await post(`${rollout.anthropic_base_url}${path}`, rollout.key, body);
    messages.push({ role: "assistant", content: `reply ${turn}` }, { role: "user", content: "Go on." });
  }
  await client.rollouts.finish(rollout.rollout_id, rollout.key, { rewards: { done: 1 } });
}

/** Leases rollouts until `count` have ended. */
async function playAll(form: (typeof FORMS)[number], count: number): Promise<void> {
  const playing = new Set<Promise<void>>();
  for (let left = count; left > 0; ) {
    const max = Math.min(LEASED_AT_ONCE, left, inFlight - playing.size);
    for (const rollout of await client.agents.lease("bench", { worker: "bench", max, wait_s: 20 })) {
      left -= 1;
      const played = playOne(rollout, form).finally(() => playing.delete(played));
      playing.add(played);
    }
    if (playing.size >= inFlight) await Promise.race(playing);
  }
  await Promise.all(playing);
}

/** Milliseconds of workerd's CPU for each turn. `form` null: the platform's own loop. */
async function cpuOf(form: (typeof FORMS)[number] | null, count: number): Promise<number> {
  const meter = new Meter({ workerd });
  const { id } = await client.runs.create({
    ...{ environment: "held-state", environment_args: { state_bytes: 1000 }, model: MODEL },
    ...{ endpoint: { base_url: model.url }, num_examples: count, max_concurrent: inFlight },
    ...(form !== null && { agent: { name: "bench", lease_s: 600 } }),
  });
  const playing = form === null ? Promise.resolve() : playAll(form, count);
  for await (const _event of client.runs.events(id));
  await playing;
  const { workerd: seconds = 0 } = meter.stop().cpuSeconds;
  const { counts, report } = await client.runs.get(id);
  if (counts.scored !== count || report.turns !== count * TURNS) throw new Error(JSON.stringify({ counts, report }));
  return (1000 * seconds) / (count * TURNS);
}

function medianOf(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN;
}

try {
  for (const form of [null, "chat"] as const) await cpuOf(form, Math.ceil(rollouts / 4));
  const measured: Record<string, { own_ms: number; agent_ms: number; ratio: number }> = {};
  for (const form of FORMS) {
    const all: { own_ms: number; agent_ms: number; ratio: number }[] = [];
    for (let pair = 0; pair < pairs; pair += 1) {
      const order = pair % 2 === 0 ? [null, form] : [form, null];
      const [one = 0, other = 0] = [await cpuOf(order[0] ?? null, rollouts), await cpuOf(order[1] ?? null, rollouts)];
      const [own_ms, agent_ms] = pair % 2 === 0 ? [one, other] : [other, one];
      all.push({ own_ms, agent_ms, ratio: agent_ms / own_ms });
      process.stderr.write(`${form}: ${JSON.stringify(all.at(-1))}\n`);
    }
    const median = medianOf(all.map(({ ratio }) => ratio));
    measured[form] = all.find(({ ratio }) => ratio === median) ?? { own_ms: 0, agent_ms: 0, ratio: 0 };
  }
  process.stdout.write(`${JSON.stringify({ machine: describeMachine(), in_flight: inFlight, measured }, null, 1)}\n`);
} finally {
  connections.destroy();
  await stopAll();
  await platform.stop();
}
