/**
 * Rollouts of an agent through kill -9 of the platform and of workers, at moments that a seed chooses: each rollout ends
 * once, with each turn once, and what a new worker repeats reaches no model. SEEDS=20 plays twenty seeds.
 */
import { rmSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { expect, test } from "vitest";
import { seededRandom } from "../../src/contract/random.ts";
import { makeThrowAwayDirectory } from "../../src/local/state-directory.ts";
import { type LeasedRollout, RollcallClient } from "../../src/sdk/client.ts";
import { WAIT_HANGS_MS } from "../hang-limits.ts";
import { type ArithmeticModel, startArithmeticModel, TURNS } from "../local/arithmetic-model.ts";
import { deathOf, endGroup, rebooted, type Served, serve, until } from "../local/served-platform.ts";
import { testPort } from "../local/test-port.ts";

const SEEDS = Number(process.env["SEEDS"] ?? 2);
const ROLLOUTS = 16;
const WORKERS = 3;
const KILLS = 4;
const NAME = "kills";
const RETRY_MS = 50;

interface Message {
  readonly role: string;
  readonly content?: string | null;
  readonly tool_calls?: readonly { readonly id: string; readonly function: { name: string; arguments: string } }[];
  readonly tool_call_id?: string;
}

/** A worker that plays until it is killed. It repeats a request that failed, as OpenAI's client does. */
class Worker {
  readonly #killed = new AbortController();
  readonly #served: () => Served;
  readonly #name = crypto.randomUUID();
  readonly #held = new Map<string, LeasedRollout>();

  constructor(served: () => Served) {
    this.#served = served;
    void this.#lease();
    void this.#beat();
  }

  kill(): void {
    this.#killed.abort();
  }

  get #lives(): boolean {
    return !this.#killed.signal.aborted;
  }

  async #lease(): Promise<void> {
    while (this.#lives) {
      const body = { worker: this.#name, max: 4, wait_s: 1 };
      const reply = await this.#post(`/v1/agents/${NAME}/lease`, this.#served().key, body);
      const { rollouts = [] } = (reply ?? {}) as { rollouts?: LeasedRollout[] };
      for (const rollout of rollouts) {
        this.#held.set(rollout.rollout_id, rollout);
        void this.#play(rollout).finally(() => this.#held.delete(rollout.rollout_id));
      }
    }
  }

  async #beat(): Promise<void> {
    while (this.#lives) {
      const leases = [...this.#held.values()].map(({ rollout_id, lease }) => ({ rollout_id, lease }));
      await this.#post(`/v1/agents/${NAME}/heartbeat`, this.#served().key, { worker: this.#name, leases });
      await pause(1000);
    }
  }

  async #play({ rollout_id, key, task }: LeasedRollout): Promise<void> {
    const messages: Message[] = [{ role: "user", content: String(task["question"]) }];
    for (let turn = 0; turn < TURNS; turn += 1) {
      const reply = await this.#post(`/model/${rollout_id}/v1/chat/completions`, key, { model: "m", messages });
      const message = (reply as { choices: { message: Message }[] } | null)?.choices[0]?.message;
      // It was killed, or its lease is lost.
      if (message === undefined) return;
      messages.push(message, ...(message.tool_calls ?? []).map(answered));
    }
    const answer = messages.at(-1)?.content ?? "";
    await this.#post(`/v1/rollouts/${rollout_id}/finish`, key, { rewards: { right: /\d/.test(answer) ? 1 : 0 } });
  }

  /** Null if the worker was killed, or the request was refused. */
  async #post(path: string, key: string, body: object): Promise<unknown> {
    for (let tries = 0; this.#lives; tries += 1) {
      try {
        const response = await fetch(new URL(path, this.#served().url), {
          method: "POST",
          headers: {
            authorization: `Bearer ${key}`,
            "content-type": "application/json",
            "x-stainless-retry-count": String(tries),
          },
          body: JSON.stringify(body),
          signal: this.#killed.signal,
        });
        if (response.ok) return await response.json();
        await response.body?.cancel();
        if (response.status < 500 && response.status !== 429) return null;
      } catch {
        // The platform is down, or this worker was killed.
      }
      await pause(RETRY_MS);
    }
    return null;
  }
}

function answered({ id, function: { name, arguments: given } }: NonNullable<Message["tool_calls"]>[number]): Message {
  const { a, b } = JSON.parse(given) as { a: number; b: number };
  return { role: "tool", tool_call_id: id, content: String(name === "add" ? a + b : a * b) };
}

/** The platform of one seed, which is another one after a kill. */
interface Platform {
  served: Served;
  readonly directory: string;
  readonly port: number;
}

async function strike(random: () => number, workers: Worker[], platform: Platform): Promise<void> {
  const { served, directory, port } = platform;
  const kind = Math.floor(random() * 3);
  if (kind === 0) {
    const at = Math.floor(random() * workers.length);
    workers[at]?.kill();
    workers[at] = new Worker(() => platform.served);
    return;
  }
  const death = deathOf(served.workerd);
  if (kind === 1) process.kill(served.workerd.pid, "SIGKILL");
  else process.kill(-served.group, "SIGKILL");
  const back = kind === 1 ? rebooted(directory, served) : serve(directory, port);
  [, platform.served] = await Promise.all([death, back]);
}

async function play(seed: number, model: ArithmeticModel, platform: Platform) {
  const random = seededRandom("kills", seed);
  const client = () => new RollcallClient({ baseUrl: platform.served.url, apiKey: platform.served.key });
  const dataset = Array.from({ length: ROLLOUTS }, (_, at) => ({ question: `What is ${at + 2} * ${at + 3} + ${at}?` }));
  const { id } = await client().runs.create({
    ...{ environment: "agent", model: "arithmetic", endpoint: { base_url: model.url }, dataset, max_concurrent: 8 },
    agent: { name: NAME, lease_s: 5, max_leases: 20 },
  });
  const workers = Array.from({ length: WORKERS }, () => new Worker(() => platform.served));
  try {
    for (let kill = 0; kill < KILLS; kill += 1) {
      const share = ((kill + random()) / KILLS) * ROLLOUTS * TURNS;
      await until(() => model.answered() >= share, WAIT_HANGS_MS);
      await strike(random, workers, platform);
    }
    for await (const _ of client().runs.events(id, { signal: AbortSignal.timeout(WAIT_HANGS_MS) }));
    const results = [];
    for await (const row of client().runs.results(id)) results.push(row);
    return { run: await client().runs.get(id), audit: await client().runs.audit(id), results };
  } finally {
    for (const worker of workers) worker.kill();
  }
}

for (let seed = 1; seed <= SEEDS; seed += 1) {
  test(`kills of platform and workers leave each rollout with one end and each turn once, seed ${seed}`, async () => {
    const model = await startArithmeticModel(50);
    const [directory, port] = [makeThrowAwayDirectory(), testPort(0)];
    const platform = { served: await serve(directory, port), directory, port };
    try {
      const { run, audit, results } = await play(seed, model, platform);
      expect(run).toMatchObject({ status: "completed", counts: { scored: ROLLOUTS, in_flight: 0 } });
      expect(audit.violations).toEqual([]);
      expect(new Set(results.map(({ rollout_id }) => rollout_id)).size).toBe(ROLLOUTS);
      expect(results.map(({ reward, turns }) => [reward, turns])).toEqual(results.map(() => [1, TURNS]));
      const { prompt_tokens, completion_tokens } = model.usage();
      expect(run.report).toMatchObject({ turns: ROLLOUTS * TURNS, usage: { prompt_tokens, completion_tokens } });
      expect(model.asked().size).toBe(ROLLOUTS * TURNS);
      expect(model.changed).toEqual([]);
    } finally {
      endGroup(platform.served);
      await deathOf(platform.served.workerd);
      await model.stop();
      rmSync(directory, { recursive: true, force: true });
    }
  });
}
