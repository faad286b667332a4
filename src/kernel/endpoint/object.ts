/**
 * The object of one endpoint: leases for the runs that use it, and its health. The decisions are in lease-state.ts. A
 * fleet has such an object too. The fleet reports the limits, and whether it is down, from the state of its replicas.
 *
 * Invariants. A run asks for a block of rollouts at a time, never per rollout. A rollout calls this object only before
 * a failed call is retried. A grant is on disk before the run gets it. If other runs would now get another grant, they
 * are notified only of that, and ask when they are ready. So no message can arrive in the wrong order. When the last
 * run leaves, everything is deleted except the latencies of its calls, which are deleted an hour later. The alarm never
 * throws.
 */

import { DurableObject } from "cloudflare:workers";
import { InvalidModelResponseError } from "../../contract/errors.ts";
import { LIMITS } from "../../contract/limits.ts";
import { type CallOutcome, callModel } from "../clients/inference.ts";
import { databaseOf } from "../db/database.ts";
import { getEndpoint } from "../db/endpoints.ts";
import { isArmed } from "../kit/alarms.ts";
import { isAtRest, untilTheNextBoot } from "../kit/at-rest.ts";
import { idsOf, logError } from "../kit/log.ts";
import { isFleet, runObject } from "../kit/names.ts";
import { fleets } from "../kit/slice-hooks.ts";
import { Subrequests } from "../kit/subrequests.ts";
import type { FailedTry, GrantedLease, LeaseAsk } from "../messages/endpoint-wire.ts";
import { addLatencies, type Latencies } from "../messages/latency.ts";
import type { EndpointRpc, Serves } from "../messages/rpc.ts";
import { EndpointUnusable, forgetEndpoint, openEndpoint } from "./call.ts";
import { foundDown, renew, takeProbe } from "./health.ts";
import {
  ask,
  dropExpired,
  type EndpointLimits,
  isIdle,
  isOutdated,
  newEndpoint,
  nextEndpointAlarm,
  noteNotified,
  toNotify,
} from "./lease-state.ts";
import { runOf } from "./run-lease.ts";
import { EndpointStore, type Kept } from "./store.ts";
import { clear, type ProbeFault, settleProbe, suspect, UNSUSPECTED } from "./suspicion.ts";

/** How long the calls of its runs took, for monitoring. `until`: when these data are deleted. */
interface KeptLatencies {
  readonly latencies: Latencies;
  readonly until: number;
}

const LATENCIES = "latencies";
/** Counted from the last report of calls. */
const LATENCIES_KEPT_MS = 3600_000;
const PROBE_DEADLINE_MS = 10_000;
/** A rollout that waits for the result of a probe asks again after at least this time. */
const PROBED_SOON_MS = 500;
const UNASKED: ProbeFault = { error: "the probe could not be sent", kind: "unasked" };
const TOO_MANY_REQUESTS = 429;

export class EndpointObject extends DurableObject<Env> implements Serves<EndpointRpc> {
  /** The clock, replaced by tests. */
  now: () => number = () => Date.now();
  readonly #store = new EndpointStore(this.ctx.storage);
  #kept: Kept | null | undefined;
  #suspicion = UNSUSPECTED;

  async ask(asked: LeaseAsk): Promise<GrantedLease> {
    await this.#readLimits(asked);
    this.#suspicion = clear(this.#suspicion, asked.outcomes.ok_at ?? 0);
    this.#keepLatencies(asked.outcomes.latencies);
    const { state, grant: grantedLease } = ask(this.#open(asked).state, asked, this.now());
    await this.#save({ ...this.#open(asked), state });
    return grantedLease;
  }

  async failing(call: FailedTry): Promise<{ again_at: number | null }> {
    const kept = this.#load();
    if (kept === null) return { again_at: null };
    const now = this.now();
    const { outage } = kept.state.health;
    if (outage === null) this.#suspicion = suspect(this.#suspicion, call, now);
    const probe_at = outage?.probe_at ?? this.#suspicion.probe_at;
    if (probe_at === null) return { again_at: null };
    // The waiting call needs the result of a probe, so the alarm is set even if no run has rollouts left to dispatch.
    if (!isArmed(await this.ctx.storage.getAlarm(), probe_at, now)) await this.ctx.storage.setAlarm(probe_at);
    return { again_at: Math.max(probe_at, now + PROBED_SOON_MS) };
  }

  async changed(): Promise<void> {
    this.#suspicion = UNSUSPECTED;
    const kept = this.#load();
    if (kept === null) return;
    forgetEndpoint(kept.scope, kept.endpoint_id);
    const limits = await limitsOf(this.env, kept, false);
    const now = this.now();
    const latest = this.#load();
    // The last run left while the limits were read.
    if (latest === null) return;
    const health = renew(latest.state.health, now);
    await this.#save({ ...latest, limits_at: now, state: { ...latest.state, limits, health } });
  }

  latencies(): Latencies | null {
    return this.#latencies()?.latencies ?? null;
  }

  override async alarm(): Promise<void> {
    if (isAtRest(this.env)) await untilTheNextBoot();
    const kept = this.#load();
    if (kept === null) {
      await this.#rest();
      return;
    }
    const { health } = kept.state;
    const { probe_at, model } = health.outage ?? this.#suspicion;
    if (probe_at !== null && probe_at <= this.now()) this.#probed(await this.#probe(kept, model));
    // Here only the state of a fleet is read again. The settings of an endpoint are read when a run asks for a lease.
    if (isFleet(kept.endpoint_id)) await this.#readLimits(kept);
    const latest = this.#load();
    if (latest === null) return;
    await this.#save({ ...latest, state: dropExpired(latest.state, this.now()) });
  }

  /** Null if the probe was answered. Never throws. */
  async #probe({ scope, endpoint_id }: Kept, model: string): Promise<ProbeFault | null> {
    const now = this.now();
    try {
      const access = await openEndpoint(this.env, scope, endpoint_id, now);
      const outcome = await callModel({
        ...access,
        model,
        messages: [{ role: "user", content: "Hi" }],
        tools: [],
        sampling: { max_tokens: 1 },
        idempotency_key: `probe:${endpoint_id}:${now}`,
        signal: AbortSignal.timeout(PROBE_DEADLINE_MS),
      });
      return faultOf(outcome);
    } catch (thrown) {
      // No retry can fix this: the endpoint is deleted, for example. Its rollouts will report it. It is not down.
      if (thrown instanceof EndpointUnusable) return null;
      logError("endpoint probe", idsOf({ scope, endpoint_id }), thrown);
      return UNASKED;
    }
  }

  #probed(fault: ProbeFault | null): void {
    const latest = this.#load();
    if (latest === null) return;
    const now = this.now();
    const { health } = latest.state;
    if (health.outage !== null) {
      this.#keepHealth(latest, takeProbe(health, fault?.error ?? null, now));
      return;
    }
    const { model } = this.#suspicion;
    const { suspicion, down } = settleProbe(this.#suspicion, fault, now);
    this.#suspicion = suspicion;
    if (down) this.#keepHealth(latest, foundDown(health, { model, error: fault?.error ?? "" }, now));
  }

  #keepHealth(kept: Kept, health: Kept["state"]["health"]): void {
    this.#kept = { ...kept, state: { ...kept.state, health } };
  }

  /** Stores the new state, notifies the runs it affects, and sets the alarm. */
  async #save(kept: Kept): Promise<void> {
    if (isIdle(kept.state)) {
      await this.#rest();
      return;
    }
    const now = this.now();
    const run_ids = toNotify(kept.state, now).slice(0, LIMITS.sliceObjects);
    const state = noteNotified(kept.state, run_ids, now);
    this.#kept = { ...kept, state };
    this.#store.save(this.#kept);
    if (run_ids.length > 0) this.ctx.waitUntil(this.#notify(kept, run_ids));
    const due = [nextEndpointAlarm(state, now), this.#suspicion.probe_at];
    const at = Math.min(...due.filter((moment) => moment !== null));
    if (at < Number.POSITIVE_INFINITY) await this.ctx.storage.setAlarm(at);
  }

  /** No run uses the endpoint. Deletes everything except the latencies; deletes them too if their time is over. */
  async #rest(): Promise<void> {
    this.#kept = null;
    this.#store.clear();
    const until = this.#latencies()?.until ?? 0;
    if (until <= this.now()) {
      await this.ctx.storage.deleteAll();
      return;
    }
    await this.ctx.storage.setAlarm(until);
  }

  #latencies(): KeptLatencies | null {
    return this.ctx.storage.kv.get<KeptLatencies>(LATENCIES) ?? null;
  }

  #keepLatencies(reported: Latencies | undefined): void {
    const latencies = addLatencies(this.#latencies()?.latencies, reported);
    if (reported === undefined || latencies === undefined) return;
    const kept: KeptLatencies = { latencies, until: this.now() + LATENCIES_KEPT_MS };
    this.ctx.storage.kv.put(LATENCIES, kept);
  }

  /** A run that cannot be reached is notified again by the alarm. */
  async #notify({ scope }: Kept, run_ids: readonly string[]): Promise<void> {
    await new Subrequests().objectAll(run_ids, async (run_id) => {
      try {
        await runObject(this.env, scope, runOf(run_id)).endpointChanged();
      } catch (thrown) {
        logError("run does not answer", idsOf({ scope, run_id: runOf(run_id) }), thrown);
      }
    });
  }

  #load(): Kept | null {
    if (this.#kept === undefined) this.#kept = this.#store.load();
    return this.#kept;
  }

  #open({ scope, endpoint_id }: Pick<LeaseAsk, "scope" | "endpoint_id">): Kept {
    const unlimited = { max_concurrent: null, rpm: null };
    return this.#load() ?? { scope, endpoint_id, state: newEndpoint(unlimited), limits_at: 0 };
  }

  /** If the settings cannot be read again, the known ones stay. If none are known, it throws: nothing is granted. */
  async #readLimits(asked: Pick<LeaseAsk, "scope" | "endpoint_id">): Promise<void> {
    const known = this.#load();
    const now = this.now();
    if (known !== null && !isOutdated(known.state.limits, now - known.limits_at)) return;
    const waits = known === null || known.state.runs.sums.more > 0;
    try {
      const limits = await limitsOf(this.env, asked, waits);
      const kept = this.#open(asked);
      this.#kept = { ...kept, limits_at: now, state: { ...kept.state, limits } };
    } catch (thrown) {
      if (known === null) throw thrown;
      logError("endpoint settings", idsOf(asked), thrown);
    }
  }
}

/** `waits`: a run has rollouts to dispatch. */
async function limitsOf(
  env: Env,
  { scope, endpoint_id }: Pick<LeaseAsk, "scope" | "endpoint_id">,
  waits: boolean,
): Promise<EndpointLimits> {
  if (isFleet(endpoint_id)) {
    const { max_concurrent, down } = await fleets().limits(env, scope, endpoint_id, waits);
    return { max_concurrent, rpm: null, fleet: { down } };
  }
  const row = await getEndpoint(databaseOf(env), scope, endpoint_id);
  return { max_concurrent: row?.max_concurrent ?? null, rpm: row?.rpm ?? null };
}

/** A fault that rollouts would have too. Null if the probe was answered: an error that no retry fixes is an answer. */
function faultOf(outcome: CallOutcome): ProbeFault | null {
  if (outcome.kind === "aborted") {
    return { error: `no answer within ${PROBE_DEADLINE_MS / 1000} s`, kind: "silent" };
  }
  if (outcome.kind !== "failed" || !outcome.retryable) return null;
  // With a limit of one token an unusable answer is normal.
  if (outcome.error instanceof InvalidModelResponseError) return null;
  const limited = outcome.status === TOO_MANY_REQUESTS;
  return { error: outcome.error.message, kind: limited ? "limited" : "refused" };
}
