/** The platform's side of a benchmark: starts a run as a client does, and watches it to its end. */
import type { RunView } from "../src/contract/run.ts";
import { RollcallClient } from "../src/sdk/client.ts";
import { ScriptedTrainer } from "../test/fakes/scripted-trainer.ts";
import { AGENT, playAgents } from "./play-agents.ts";
import type { BenchedPlatform } from "./processes.ts";
import { IN_FLIGHT, MODEL, workload } from "./workload.ts";

type Platform = Pick<BenchedPlatform, "url" | "key">;

export interface Size {
  readonly rollouts: number;
  readonly turns: number;
  /** An agent plays them, instead of the platform's own loop. */
  readonly byAgent?: boolean;
}

export interface Played {
  readonly run: RunView;
  /** From the POST that creates the run to its end as a client sees it. */
  readonly seconds: number;
}

export async function playEval(platform: Platform, modelUrl: string, size: Size): Promise<Played> {
  const { rollouts, turns, byAgent = false } = size;
  const client = new RollcallClient({ baseUrl: platform.url, apiKey: platform.key });
  const started = performance.now();
  const { id } = await client.runs.create({
    ...workload(turns).environment,
    model: MODEL,
    endpoint: { base_url: modelUrl },
    num_examples: rollouts,
    max_concurrent: IN_FLIGHT,
    ...(byAgent && { agent: { name: AGENT } }),
  });
  if (byAgent) await playAgents(client, { form: "chat", rollouts, turns, inFlight: IN_FLIGHT });
  return await watched(client, id, started);
}

const GROUP_SIZE = 8;
export const BATCH_ROLLOUTS = 40;

/** Plays a training run; its trainer learns nothing and takes each batch as it arrives. */
export async function playTraining(platform: Platform, modelUrl: string, { rollouts, turns }: Size): Promise<Played> {
  const { url, key } = platform;
  const client = new RollcallClient({ baseUrl: url, apiKey: key });
  const started = performance.now();
  const { id, trainer } = await client.runs.create({
    kind: "training",
    ...workload(turns).environment,
    model: MODEL,
    endpoint: { base_url: modelUrl },
    max_concurrent: IN_FLIGHT,
    group_size: GROUP_SIZE,
    batch_size: { rollouts: BATCH_ROLLOUTS },
    max_steps: rollouts / BATCH_ROLLOUTS,
    trainer: { delivery: "pull" },
    filters: { zero_variance: "keep" },
  });
  if (!trainer) throw new Error(`${id} came without a token for its trainer`);
  await new ScriptedTrainer({ url, run: id, token: trainer.token }).work();
  return await watched(client, id, started);
}

async function watched(client: RollcallClient, id: string, started: number): Promise<Played> {
  // The stream ends with the run: watching it is one request, polling would be hundreds.
  for await (const _event of client.runs.events(id));
  const seconds = (performance.now() - started) / 1000;
  return { run: await client.runs.get(id), seconds };
}
