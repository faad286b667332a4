/**
 * What moves a run's judging forward: permits of its judges' endpoints, dispatch within them, the sweep of what went
 * silent. Judges are called by the consumer of `rollout-judgements`; a message holds a unit's number.
 *
 * Invariants. A unit is sent only while its endpoint grants permits for it and `max_concurrent` of the run leaves room:
 * calls of judges at once are counted like rollouts at once, on an endpoint that is the policy's too as somebody else's.
 */
import { LIMITS } from "../../../contract/limits.ts";
import type { RunSpec } from "../../contract/wire.ts";
import { type Asker, afterDispatch, judgesOf, LeaseKeeper, leaseRoom, type Need } from "../../endpoint/run-lease.ts";
import { maxConcurrentOf } from "../control.ts";
import type { RunStore } from "../store.ts";
import { endCancelled, judgeLeaseOf, SENT_MS, setJudgeLease, sweepJudging } from "./ledger.ts";

export class RunJudging {
  readonly #env: Env;
  readonly #store: RunStore;
  readonly #now: () => number;
  readonly #leases = new Map<string, LeaseKeeper>();

  constructor(env: Env, store: RunStore, now: () => number) {
    this.#env = env;
    this.#store = store;
    this.#now = now;
  }

  /** One of its endpoints would grant something else now: each is asked. */
  changed(): void {
    for (const endpoint of Object.keys(this.#store.head().judge_gates)) {
      this.#leaseOf(endpoint).changed();
    }
  }

  async renew(spec: RunSpec): Promise<void> {
    for (const asker of this.#askers(spec)) {
      const { endpoint_id } = asker;
      await this.#leaseOf(endpoint_id).renew(asker, this.#need(spec, endpoint_id));
    }
  }

  /** Units to be sent now. What is not to be asked for any more is ended. */
  dispatch(spec: RunSpec): number[] {
    if (spec.judges === undefined) return [];
    endCancelled(this.#store, spec, this.#now(), LIMITS.sliceObjects);
    return this.#askers(spec).flatMap(({ endpoint_id }) =>
      this.#store.transaction(() => this.#dispatchTo(spec, endpoint_id)),
    );
  }

  #dispatchTo(spec: RunSpec, endpoint_id: string): number[] {
    const now = this.#now();
    const { judging } = this.#store;
    const most = maxConcurrentOf(spec, this.#store.head());
    let { running } = judging.load(endpoint_id, now);
    const units: number[] = [];
    for (const { unit, calls } of judging.waiting(endpoint_id, now, LIMITS.sliceObjects)) {
      const lease = judgeLeaseOf(this.#store, endpoint_id);
      const room = Math.min(most - running, leaseRoom(lease, running, now));
      if (room <= 0) break;
      const lanes = Math.min(room, calls, LIMITS.parallelFetches);
      judging.setUnit(unit, { stage: "sent", lanes, unheard: 0, ask_at: now + SENT_MS });
      setJudgeLease(this.#store, endpoint_id, afterDispatch(lease, calls, now));
      running += lanes;
      units.push(unit);
    }
    return units;
  }

  /** Units to be sent again. */
  sweep(spec: RunSpec): number[] {
    if (spec.judges === undefined) return [];
    return sweepJudging(this.#store, spec, this.#now(), LIMITS.sliceObjects);
  }

  /** Epoch milliseconds of what is next to be done; null for nothing. */
  nextAt(spec: RunSpec): number | null {
    if (spec.judges === undefined) return null;
    const now = this.#now();
    const cancelled = this.#store.head().stop?.kind === "cancel";
    const untold = cancelled && this.#store.judging.unclaimed(1).length > 0;
    const due = this.#askers(spec).map(({ endpoint_id }) =>
      this.#leaseOf(endpoint_id).nextAt(this.#need(spec, endpoint_id)),
    );
    const all = [untold ? now : null, this.#store.judging.nextAt(now), ...due];
    const known = all.filter((at) => at !== null);
    return known.length === 0 ? null : Math.min(...known);
  }

  /** Endpoints it uses, or holds permits of, and who it is there. */
  #askers({ judges = {}, scope, run_id }: RunSpec): Asker[] {
    const held = Object.keys(this.#store.head().judge_gates);
    const used = new Set([...held, ...(Object.keys(judges).length === 0 ? [] : this.#store.judging.endpoints())]);
    return [...used].map((endpoint_id) => {
      const target = Object.values(judges).find((judge) => judge.endpoint_id === endpoint_id);
      return { scope, endpoint_id, run_id: judgesOf(run_id), model: target?.model ?? "" };
    });
  }

  #need(spec: RunSpec, endpointId: string): Need {
    const { running, waiting } = this.#store.judging.load(endpointId, this.#now());
    const most = maxConcurrentOf(spec, this.#store.head());
    return {
      running,
      wants: Math.max(running, Math.min(most, running + waiting)),
      more: waiting > 0,
    };
  }

  #leaseOf(endpointId: string): LeaseKeeper {
    const known = this.#leases.get(endpointId);
    if (known !== undefined) return known;
    const slot = {
      read: () => judgeLeaseOf(this.#store, endpointId),
      write: (lease: Parameters<typeof setJudgeLease>[2]) => setJudgeLease(this.#store, endpointId, lease),
    };
    const made = new LeaseKeeper(this.#env, slot, this.#now);
    this.#leases.set(endpointId, made);
    return made;
  }
}
