/** The agent's side of a benchmark: leases rollouts, calls their addresses and ends them, as a worker does. */
import { Agent, request as send } from "node:http";
import type { JsonObject } from "../src/contract/json.ts";
import type { LeasedRollout, RollcallClient } from "../src/sdk/client.ts";
import { MODEL } from "./workload.ts";

export const AGENT = "bench";
export const FORMS = ["chat", "chat stream", "responses", "responses stream", "messages", "messages stream"] as const;
export type FormName = (typeof FORMS)[number];

const LEASED_AT_ONCE = 64;
const connections = new Agent({ keepAlive: true });

export interface AgentWork {
  readonly form: FormName;
  readonly rollouts: number;
  readonly turns: number;
  readonly inFlight: number;
}

/** The body of one call in this form. */
function bodyOf(form: FormName, messages: readonly JsonObject[]): { path: string; body: JsonObject } {
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

async function playOne(client: RollcallClient, rollout: LeasedRollout, { form, turns }: AgentWork): Promise<void> {
  const messages: JsonObject[] = [{ role: "user", content: "Count to four." }];
  for (let turn = 0; turn < turns; turn += 1) {
    const { path, body } = bodyOf(form, messages);
    await post(`${rollout.anthropic_base_url}${path}`, rollout.key, body);
    messages.push({ role: "assistant", content: `reply ${turn}` }, { role: "user", content: "Go on." });
  }
  await client.rollouts.finish(rollout.rollout_id, rollout.key, { rewards: { done: 1 } });
}

/** Leases rollouts until all have ended. */
export async function playAgents(client: RollcallClient, work: AgentWork): Promise<void> {
  const { rollouts, inFlight } = work;
  const playing = new Set<Promise<void>>();
  for (let left = rollouts; left > 0; ) {
    const max = Math.min(LEASED_AT_ONCE, left, inFlight - playing.size);
    for (const rollout of await client.agents.lease(AGENT, { worker: "bench", max, wait_s: 20 })) {
      left -= 1;
      const played = playOne(client, rollout, work).finally(() => playing.delete(played));
      playing.add(played);
    }
    if (playing.size >= inFlight) await Promise.race(playing);
  }
  await Promise.all(playing);
}
