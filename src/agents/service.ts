/** Leases of rollouts, model calls of agents, and the ends of their rollouts. */
import { AGENT_TIMEOUT_S } from "../contract/agent.ts";
import { EvalRequest } from "../contract/eval-request.ts";
import type { JsonObject } from "../contract/json.ts";
import type { Messages } from "../contract/messages.ts";
import type { Scope } from "../contract/scope.ts";
import type { ReportedScores } from "../contract/trajectory.ts";
import { LruCache } from "../kernel/kit/caches.ts";
import type { CreateOptions } from "../kernel/kit/idempotency.ts";
import { rolloutShard } from "../kernel/kit/names.ts";
import { type RolloutAccess, readRolloutKey, rolloutKey, sha256Hex } from "../kernel/kit/secrets.ts";
import { isPassing } from "../kernel/kit/storage-faults.ts";
import type { AgentCall, AgentReply } from "../kernel/messages/agent-wire.ts";
import { type Result, refuse } from "../kernel/messages/refusal.ts";
import { acceptRun } from "../kernel/service/accept-run.ts";
import { agentsObject, type LeasedOffer } from "./rpc.ts";
import { storedEnd } from "./stored-end.ts";
import {
  AGENT_FAILURES,
  type AgentHeartbeat,
  type AgentLeaseRequest,
  type CreatedRollout,
  type LeasedRollout,
  type LeaseStates,
  type RolloutFinish,
  type RolloutRequest,
} from "./wire.ts";

const DAY_S = 86_400;
/** How long a rollout is waited for that its caller plays. */
const FIRST_LEASE_S = 20;
/** A caller may repeat its request this often, and gets another key each time. */
const ONE_CALLER = 20;
/** How often a call is repeated whose object stopped meanwhile: it continues where it was. */
const RESUMED = 3;
const RESUME_WAIT_MS = 200;

/** What keys stand for. Whether one still counts, its rollout's object decides. */
const accesses = new LruCache<RolloutAccess>(10_000);

/** `origin`: the platform's, in the request. */
export async function leaseRollouts(
  env: Env,
  scope: Scope,
  name: string,
  request: AgentLeaseRequest,
  origin: string,
): Promise<LeasedRollout[]> {
  const leased = await agentsObject(env, scope).lease(scope, name, request);
  return leased.map((offer) => shown(env, scope, offer, origin));
}

/** A run of one rollout, which the caller plays. A repeat of the request gets the rollout with another key. */
export async function createRollout(
  env: Env,
  scope: Scope,
  { row, agent, ...asked }: RolloutRequest,
  options: CreateOptions & { readonly origin: string },
): Promise<Result<CreatedRollout>> {
  const { idempotencyKey } = options;
  const own = idempotencyKey === null ? crypto.randomUUID() : sha256Hex(idempotencyKey);
  const name = `one-${own.slice(0, 36)}`;
  const { rollout_timeout_s = AGENT_TIMEOUT_S } = asked.limits;
  const settings = { ...agent, name, lease_s: Math.min(DAY_S, Math.ceil(rollout_timeout_s)), max_leases: ONE_CALLER };
  const one = { num_examples: 1, ...(row !== undefined && { dataset: [row] }), agent: settings };
  const request = EvalRequest.parse({ ...asked, ...one });
  const begun = await acceptRun(env, scope, request, options);
  if (!begun.ok) return begun;
  const { run, replayed } = begun.value;
  const lease = { worker: "caller", max: 1, wait_s: FIRST_LEASE_S };
  const [offer] = await agentsObject(env, scope).lease(scope, name, lease, replayed);
  const rollout = offer === undefined ? null : shown(env, scope, offer, options.origin);
  return { ok: true, value: { run_id: run.id, agent: name, rollout } };
}

function shown(env: Env, scope: Scope, { host, fleet: _, ...offer }: LeasedOffer, origin: string): LeasedRollout {
  const { run_id, rollout_id, lease, prompt, task } = offer;
  const anthropic_base_url = `${origin}/model/${rollout_id}`;
  const base_url = `${anthropic_base_url}/v1`;
  const key = rolloutKey(env, { scope, run_id, rollout_id, host, lease });
  return { ...offer, task, prompt: sentPrompt(prompt), base_url, anthropic_base_url, key };
}

/** A bare text is sent to models as the user's. */
function sentPrompt(prompt: Messages): LeasedRollout["prompt"] {
  return prompt.map(({ role, ...message }) => ({ role: role === "text" ? "user" : role, ...message }));
}

export async function keepLeases(env: Env, scope: Scope, request: AgentHeartbeat): Promise<LeaseStates["data"]> {
  return await agentsObject(env, scope).heartbeat(request);
}

export async function releaseLeases(env: Env, scope: Scope, request: AgentHeartbeat): Promise<LeaseStates["data"]> {
  return await agentsObject(env, scope).release(scope, request);
}

/** The rollout that the key opens; null if it opens none, or another one. */
export function accessOf(env: Env, key: string, rolloutId: string): RolloutAccess | null {
  // To read a key takes five keyed hashes, and an agent sends it with each call.
  const access = accesses.get(key) ?? readRolloutKey(env, key);
  if (access !== null) accesses.set(key, access);
  return access?.rollout_id === rolloutId ? access : null;
}

/** One model call of an agent. If the rollout's object stops meanwhile, the call continues in its next instance. */
export async function callModel(env: Env, access: RolloutAccess, call: AgentCall): Promise<AgentReply> {
  for (let tries = 1; ; tries += 1) {
    try {
      const asked = tries === 1 ? call : { ...call, retry: true };
      return await shardOf(env, access).callForAgent(access.rollout_id, access.lease, asked);
    } catch (thrown) {
      if (tries > RESUMED || !isPassing(env, thrown)) throw thrown;
      await scheduler.wait(RESUME_WAIT_MS * tries);
    }
  }
}

/** The name of the run's model; null once the rollout has ended. */
export async function modelOf(env: Env, access: RolloutAccess): Promise<string | null> {
  return await shardOf(env, access).modelForAgent(access.rollout_id);
}

export async function finishRollout(
  env: Env,
  access: RolloutAccess,
  { answer, state, rewards, metrics, stop_condition, is_truncated, error }: RolloutFinish,
): Promise<Result<{ readonly rollout_id: string; readonly state: "ended" }>> {
  const { rollout_id, lease } = access;
  const failed = error && { failure: AGENT_FAILURES[error.kind], error: error.error, message: error.message };
  const isReported = rewards !== undefined || metrics !== undefined;
  const reported = isReported ? { rewards: weighted(rewards), metrics: metrics ?? {} } : null;
  // It came through JSON.parse, so it is JSON.
  const fields = { answer, state: state as JsonObject, reported, stop_condition, is_truncated, error: failed };
  const known = await shardOf(env, access).finishForAgent(rollout_id, lease, fields);
  // Objects are freed some time after the end of their run.
  const reply = known === "unknown" ? await storedEnd(env, access, fields) : known;
  if (reply === "ended") return { ok: true, value: { rollout_id, state: "ended" } };
  if (reply === "lost") return refuse("lease_lost", "another worker has leased the rollout meanwhile", "rollout_id");
  if (reply === "unknown") return refuse("not_found", `no rollout ${rollout_id}`, "rollout_id");
  if ("over" in reply) return refuse("conflict", `${rollout_id} has ended: ${reply.over}`, "rollout_id");
  const { field, message } = reply.refused;
  return refuse("invalid_request", `${field}: ${message}`, field);
}

function weighted(rewards: RolloutFinish["rewards"] = {}): ReportedScores["rewards"] {
  const entries = Object.entries(rewards).map(([name, given]) => {
    const reward = given === null || typeof given === "number" ? { score: given, weight: 1 } : given;
    return [name, reward] as const;
  });
  return Object.fromEntries(entries);
}

function shardOf(env: Env, { scope, run_id, host }: RolloutAccess) {
  return rolloutShard(env, scope, run_id, host);
}
