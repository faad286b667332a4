/**
 * One endpoint, one object: permits for the runs that use it, and whether it is well. What it decides stands in
 * endpoint-ledger.ts.
 *
 * Invariants. It is called once per block of rollouts and never per rollout. What it granted is on disk before the run
 * hears of it. Others are told that they would get something else now; they ask when they are ready, so nothing it says
 * can arrive in the wrong order. With the last run it forgets everything. The alarm never throws.
 */
import { DurableObject } from "cloudflare:workers";
import { type CallOutcome, callModel } from "../clients/inference.ts";
import { InvalidModelResponseError } from "../core/errors.ts";
import { LIMITS } from "../core/limits.ts";
import type { Scope } from "../core/scope.ts";
import { getEndpoint } from "../db/endpoints.ts";
import { isAtRest, untilTheNextBoot } from "./at-rest.ts";
import { type Outage, probed, renewed } from "./endpoint-health.ts";
import {
  ask,
  type EndpointLimits,
  type EndpointState,
  expired,
  type Grant,
  isIdle,
  newEndpoint,
  nextEndpointAlarm,
  type PermitAsk,
  told,
  toTell,
} from "./endpoint-ledger.ts";
import { EndpointUnusable, forgetEndpoint, openEndpoint } from "./endpoints.ts";
import { logError } from "./log.ts";
import { runObject } from "./names.ts";
import type { EndpointRpc, Serves } from "./rpc.ts";
import { runOf } from "./run-permits.ts";
import { Subrequests } from "./subrequests.ts";

/** What is kept: whose endpoint it is, what was decided, and when its settings were last read. */
interface Kept {
  readonly scope: Scope;
  readonly endpoint_id: string;
  readonly state: EndpointState;
  readonly limits_at: number;
}

const LIMITS_KEPT_MS = 5 * 60_000;
const PROBE_DEADLINE_MS = 10_000;

export class EndpointObject extends DurableObject<Env> implements Serves<EndpointRpc> {
  /** The clock, replaced by tests. */
  now: () => number = () => Date.now();
  #kept: Kept | null | undefined;

  async ask(asked: PermitAsk): Promise<Grant> {
    await this.#readLimits(asked);
    const { state, grant } = ask(this.#open(asked).state, asked, this.now());
    await this.#save({ ...this.#open(asked), state });
    return grant;
  }

  async changed(): Promise<void> {
    const kept = this.#load();
    if (kept === null) return;
    forgetEndpoint(kept.scope, kept.endpoint_id);
    const limits = await limitsOf(this.env, kept);
    const now = this.now();
    const latest = this.#load();
    // The last run has left meanwhile.
    if (latest === null) return;
    const health = renewed(latest.state.health, now);
    await this.#save({ ...latest, limits_at: now, state: { ...latest.state, limits, health } });
  }

  override async alarm(): Promise<void> {
    if (isAtRest(this.env)) await untilTheNextBoot();
    const kept = this.#load();
    if (kept === null) return;
    try {
      const { outage } = kept.state.health;
      if (outage !== null && outage.probe_at <= this.now()) await this.#probe(kept, outage);
    } catch (thrown) {
      logError("endpoint alarm", kept.endpoint_id, thrown);
      this.#probed("it could not be asked");
    }
    const latest = this.#load();
    if (latest === null) return;
    await this.#save({ ...latest, state: expired(latest.state, this.now()) });
  }

  async #probe(kept: Kept, outage: Outage): Promise<void> {
    const { scope, endpoint_id } = kept;
    const now = this.now();
    try {
      const access = await openEndpoint(this.env, scope, endpoint_id, now);
      const outcome = await callModel({
        ...access,
        model: outage.model,
        messages: [{ role: "user", content: "Hi" }],
        tools: [],
        sampling: { max_tokens: 1 },
        idempotency_key: `probe:${endpoint_id}:${now}`,
        signal: AbortSignal.timeout(PROBE_DEADLINE_MS),
      });
      this.#probed(faultOf(outcome));
    } catch (thrown) {
      // Its rollouts will say what is wrong with it, and it is not that it is down.
      if (!(thrown instanceof EndpointUnusable)) throw thrown;
      this.#probed(null);
    }
  }

  #probed(error: string | null): void {
    const latest = this.#load();
    if (latest === null) return;
    const health = probed(latest.state.health, error, this.now());
    this.#kept = { ...latest, state: { ...latest.state, health } };
  }

  /** Keeps the new state, tells whoever it concerns, and arms the alarm. */
  async #save(kept: Kept): Promise<void> {
    if (isIdle(kept.state)) {
      this.#kept = null;
      await this.ctx.storage.deleteAll();
      return;
    }
    const now = this.now();
    const run_ids = toTell(kept.state, now).slice(0, LIMITS.sliceObjects);
    const state = told(kept.state, run_ids, now);
    this.#kept = { ...kept, state };
    this.ctx.storage.kv.put("endpoint", this.#kept);
    if (run_ids.length > 0) this.ctx.waitUntil(this.#tell(kept, run_ids));
    const at = nextEndpointAlarm(state, now);
    if (at !== null) await this.ctx.storage.setAlarm(at);
  }

  /** One that is not reached is told again by the alarm. */
  async #tell({ scope }: Kept, run_ids: readonly string[]): Promise<void> {
    await new Subrequests().objectAll(run_ids, async (run_id) => {
      try {
        await runObject(this.env, scope, runOf(run_id)).endpointChanged();
      } catch (thrown) {
        logError("run does not answer", run_id, thrown);
      }
    });
  }

  #load(): Kept | null {
    if (this.#kept === undefined) this.#kept = this.ctx.storage.kv.get<Kept>("endpoint") ?? null;
    return this.#kept;
  }

  #open({ scope, endpoint_id }: PermitAsk): Kept {
    const unlimited = { max_concurrent: null, rpm: null };
    return this.#load() ?? { scope, endpoint_id, state: newEndpoint(unlimited), limits_at: 0 };
  }

  /** Settings that cannot be read anew stay as they are known; unknown ones grant nothing. */
  async #readLimits(asked: PermitAsk): Promise<void> {
    const known = this.#load();
    const now = this.now();
    if (known !== null && now - known.limits_at < LIMITS_KEPT_MS) return;
    try {
      const limits = await limitsOf(this.env, asked);
      const kept = this.#open(asked);
      this.#kept = { ...kept, limits_at: now, state: { ...kept.state, limits } };
    } catch (thrown) {
      if (known === null) throw thrown;
      logError("endpoint settings", asked.endpoint_id, thrown);
    }
  }
}

async function limitsOf(
  env: Env,
  { scope, endpoint_id }: Pick<PermitAsk, "scope" | "endpoint_id">,
): Promise<EndpointLimits> {
  const row = await getEndpoint(env.DB, scope, endpoint_id);
  return { max_concurrent: row?.max_concurrent ?? null, rpm: row?.rpm ?? null };
}

/** What a probe met that rollouts would meet again; null when it was answered, with whatever. */
function faultOf(outcome: CallOutcome): string | null {
  if (outcome.kind === "aborted") return `no answer within ${PROBE_DEADLINE_MS / 1000} s`;
  if (outcome.kind !== "failed" || !outcome.retryable) return null;
  // One token may well be no usable answer.
  return outcome.error instanceof InvalidModelResponseError ? null : outcome.error.message;
}
