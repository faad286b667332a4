/** An agent as a test plays it: leases rollouts, calls their addresses, ends them. */
import { env, exports } from "cloudflare:workers";
import { AgentsObject } from "../../src/agents/object.ts";
import type { LeasedRollout, RolloutFinish } from "../../src/agents/wire.ts";
import { inside, type RunOptions, type TestApi } from "../kernel/platform.ts";

export type Finish = Partial<Omit<RolloutFinish, "error">> & {
  readonly error?: { readonly message: string; readonly kind?: string; readonly error?: string };
};

export interface Played extends LeasedRollout {
  /** A chat completion. */
  readonly chat: (body: object, headers?: Readonly<Record<string, string>>) => Promise<Response>;
  /** The text of a chat completion of these messages. */
  readonly say: (...messages: readonly object[]) => Promise<string>;
  readonly send: (path: string, body: object, headers?: Readonly<Record<string, string>>) => Promise<Response>;
  readonly finish: (finish: Finish) => Promise<Response>;
}

/** At most `max` rollouts of the agent `name`; waits for the first one. */
export async function lease(of: TestApi, name: string, max = 1, worker = "worker"): Promise<Played[]> {
  const response = await of.post(`/v1/agents/${name}/lease`, { worker, max, wait_s: 30 });
  if (response.status !== 200) throw new Error(await response.text());
  const { rollouts } = await response.json<{ rollouts: LeasedRollout[] }>();
  return rollouts.map(played);
}

export async function leaseOne(of: TestApi, name: string, worker = "worker"): Promise<Played> {
  for (;;) {
    const [first] = await lease(of, name, 1, worker);
    if (first !== undefined) return first;
  }
}

export function played(leased: LeasedRollout): Played {
  const { base_url, key, rollout_id, model } = leased;
  const { origin } = new URL(base_url);
  const send: Played["send"] = (path, body, headers = {}) =>
    exports.default.fetch(new URL(path, origin).href, {
      method: "POST",
      body: JSON.stringify(body),
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json", ...headers },
    });
  const chat: Played["chat"] = (body, headers) => send(`${base_url}/chat/completions`, { model, ...body }, headers);
  return {
    ...leased,
    send,
    chat,
    say: async (...messages) => {
      const response = await chat({ messages });
      if (response.status !== 200) throw new Error(await response.text());
      const { choices } = await response.json<{ choices: { message: { content: string } }[] }>();
      return choices[0]?.message.content ?? "";
    },
    finish: (finish) => send(`/v1/rollouts/${rollout_id}/finish`, finish),
  };
}

export async function heartbeat(of: TestApi, { rollout_id, lease }: Played): Promise<{ readonly state: string }> {
  const response = await of.post("/v1/agents/tester/heartbeat", { worker: "worker", leases: [{ rollout_id, lease }] });
  const { data } = await response.json<{ data: { state: string }[] }>();
  return data[0] ?? { state: "none" };
}

/** Fires the alarm of the queue two minutes from now: all leases have expired. */
export async function expire(of: TestApi): Promise<void> {
  await inside(queueOf(of), AgentsObject, async (queue) => {
    queue.now = () => Date.now() + 120_000;
    await queue.alarm();
    queue.now = () => Date.now();
  });
}

export function queueOf({ scope }: TestApi) {
  return env.AGENTS.getByName(`org/${scope.orgId}/${scope.projectId}/agents`);
}

const prices = { input_per_mtok_micros: 1_000_000, output_per_mtok_micros: 2_000_000 };

/** A run with a cap, for the agent `tester`; each answer has at most 100 tokens. */
export const capped = (model: string, rows: number, max_cost_micros: number): RunOptions => ({
  ...{ environment: "agent", agent: { name: "tester" }, model, max_cost_micros, min_scored: 0 },
  ...{ endpoint: { base_url: env.MODEL_URL, prices }, sampling: { max_tokens: 100 } },
  dataset: Array.from({ length: rows }, (_, row) => ({ question: `Question ${row}?` })),
});

/** For each rollout its reward, or why it has none. */
export async function outcomes(of: TestApi, id: string) {
  const rows = await of.results(id);
  return Object.fromEntries(rows.map((row) => [row.rollout_id, row.reason ?? row.reward]));
}
