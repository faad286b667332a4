/**
 * `npm run bench:agents [-- --rollouts N] [--pairs P] [--in-flight N] [--forms F,…] [--turns T]`: CPU time of workerd for a turn that an agent makes
 * through the address of its rollout, in each wire form, and for a turn of the platform's own loop, in alternating
 * pairs on one platform. The agent leases, calls and ends as a worker does, so a turn has its part of that.
 */
import { parseArgs } from "node:util";
import { bootPlatform } from "../src/local/platform.ts";
import { readReadyFile } from "../src/local/state-directory.ts";
import { RollcallClient } from "../src/sdk/client.ts";
import { describeMachine } from "./machine.ts";
import { Meter } from "./measure.ts";
import { AGENT, FORMS, type FormName, playAgents } from "./play-agents.ts";
import { startModel, stopAll } from "./processes.ts";
import { MODEL, workload } from "./workload.ts";

const { values } = parseArgs({
  options: {
    rollouts: { type: "string", default: "400" },
    pairs: { type: "string", default: "3" },
    "in-flight": { type: "string", default: "100" },
    forms: { type: "string", default: "" },
    turns: { type: "string", default: "12" },
  },
});
const [rollouts, pairs, turns] = [Number(values.rollouts), Number(values.pairs), Number(values.turns)];
const inFlight = Number(values["in-flight"]);

const forms = FORMS.filter((form) => values.forms === "" || values.forms.split(",").includes(form));

const platform = await bootPlatform({
  directory: null,
  log: (line) => process.stderr.write(`${line}\n`),
});
const model = await startModel(turns);
const workerd = readReadyFile(platform.directory)?.workerd_pid ?? 0;
const client = new RollcallClient({ baseUrl: platform.url, apiKey: platform.key });

/** Milliseconds of workerd's CPU for each turn. `form` null: the platform's own loop. */
async function cpuOf(form: FormName | null, count: number): Promise<number> {
  const meter = new Meter({ workerd });
  const { id } = await client.runs.create({
    ...{
      ...workload(turns).environment,
      model: MODEL,
      endpoint: { base_url: model.url },
      num_examples: count,
      max_concurrent: inFlight,
    },
    ...(form !== null && { agent: { name: AGENT, lease_s: 600 } }),
  });
  const playing = form === null ? Promise.resolve() : playAgents(client, { form, rollouts: count, turns, inFlight });
  for await (const _event of client.runs.events(id));
  await playing;
  const { workerd: seconds = 0 } = meter.stop().cpuSeconds;
  const { counts, report } = await client.runs.get(id);
  if (counts.scored !== count || report.turns !== count * turns) throw new Error(JSON.stringify({ counts, report }));
  return (1000 * seconds) / (count * turns);
}

function medianOf(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN;
}

try {
  for (const form of [null, "chat"] as const) await cpuOf(form, Math.ceil(rollouts / 4));
  const measured: Record<string, { own_ms: number; agent_ms: number; ratio: number }> = {};
  for (const form of forms) {
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
  await stopAll();
  await platform.stop();
}
