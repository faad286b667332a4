/**
 * Moves a run's judging forward: leases of its judges' endpoints, dispatch within them, reconciliation of what is
 * silent. The consumer of `rollout-judgements` calls the judges; a message holds the number of a scoring group.
 *
 * Invariants. A scoring group is sent only if its endpoint's lease and the run's `max_concurrent` allow it. Concurrent
 * judge calls count like concurrent rollouts. On an endpoint that the policy uses too, the judges have a lease of their
 * own.
 */
import { LIMITS } from "../../../contract/limits.ts";
import type { RunView } from "../../../contract/run.ts";
import { type Asker, LeaseKeeper, type Needed, noteChanged } from "../../endpoint/lease-keeper.ts";
import { afterDispatch, judgesOf, leaseRemaining } from "../../endpoint/run-lease.ts";
import type { LeaseIssuer } from "../../messages/rpc.ts";
import type { RunSpec } from "../../messages/wire.ts";
import { passCap } from "../cap.ts";
import { maxConcurrentOf, stopsJudging } from "../control.ts";
import type { EndpointLoad } from "../judging-store.ts";
import type { RunLeases, Traffic } from "../leases.ts";
import type { JudgementOrder } from "../outbox.ts";
import type { RunStore } from "../store.ts";
import { coversScoringGroup } from "./cap.ts";
import { isUnproven, paceOf } from "./pace.ts";
import {
  endCancelled,
  endUnpaid,
  judgeLeaseOf,
  judgeStatusReason,
  reconcileJudging,
  SENT_MS,
  setJudgeLease,
} from "./scoring-group-state.ts";

/** The part of the run's lease that silent judges may use. */
const SILENT_SHARE = 1 / 4;

export class RunJudging {
  readonly #env: Env;
  readonly #store: RunStore;
  readonly #now: () => number;
  readonly #keepers = new Map<string, LeaseKeeper>();

  readonly #leases: RunLeases;

  constructor(env: Env, store: RunStore, now: () => number, leases: RunLeases) {
    this.#env = env;
    this.#store = store;
    this.#now = now;
    this.#leases = leases;
  }

  /** One of its endpoints would grant something else now: all leases are renewed. */
  changed(by: LeaseIssuer): void {
    if (by !== "endpoint") return;
    for (const endpoint of Object.keys(this.#store.head().judge_gates)) {
      noteChanged(this.#slotOf(endpoint));
    }
  }

  async renew(spec: RunSpec): Promise<void> {
    for (const asker of this.#askers(spec)) {
      const { endpoint_id } = asker;
      await this.#keeperOf(endpoint_id).renewAt(this.#env, asker, this.#needed(spec, endpoint_id));
    }
  }

  /** Scoring groups to send now. Those of a cancelled run are ended. */
  dispatch(spec: RunSpec): JudgementOrder[] {
    if (spec.judges === undefined) return [];
    endCancelled(this.#store, spec, this.#now(), LIMITS.sliceObjects);
    return this.#askers(spec).flatMap(({ endpoint_id }) =>
      this.#store.transaction(() => this.#dispatchTo(spec, endpoint_id)),
    );
  }

  /**
   * Ends the run if its cap does not cover the next step, and scoring groups that would wait for judges for ever.
   * `idle`: see passCap in run/cap.ts.
   */
  passCap(spec: RunSpec, idle: number): void {
    if (passCap(this.#store, spec, this.#now(), idle)) endUnpaid(this.#store, spec, this.#now());
  }

  #dispatchTo(spec: RunSpec, endpoint_id: string): JudgementOrder[] {
    const now = this.#now();
    const { judging } = this.#store;
    const most = maxConcurrentOf(spec, this.#store.head());
    let { running } = judging.load(endpoint_id, now);
    const places = this.#places(spec, endpoint_id);
    const scoringGroups: number[] = [];
    for (const entry of judging.waiting(endpoint_id, now, LIMITS.sliceObjects)) {
      const { unit: scoringGroup, calls } = entry;
      if (!coversScoringGroup(this.#store, spec, entry)) continue;
      const lease = judgeLeaseOf(this.#store, endpoint_id);
      const remaining = Math.min(most - running, leaseRemaining(lease, running, now));
      if (remaining <= 0 || scoringGroups.length >= places) break;
      const lanes = Math.min(remaining, calls, LIMITS.parallelFetches);
      judging.setScoringGroup(scoringGroup, { stage: "sent", lanes, unheard: 0, ask_at: now + SENT_MS });
      setJudgeLease(this.#store, endpoint_id, afterDispatch(lease, calls, now));
      running += lanes;
      scoringGroups.push(scoringGroup);
    }
    return scoringGroups.map((scoringGroup) => ({ unit: scoringGroup, ...paceOf(this.#store.head(), endpoint_id) }));
  }

  /**
   * How many scoring groups may be sent: the rest of the run's lease. A judge whose pace is unknown gets one. A silent
   * judge gets only a part of the lease, so that other judges of the organisation can be called.
   */
  #places(spec: RunSpec, endpointId: string): number {
    const head = this.#store.head();
    const quota = this.#leases.judgements();
    const free = quota - this.traffic(spec).inQueue;
    const here = this.#store.judging.load(endpointId, this.#now()).under_way;
    if (isUnproven(head, endpointId)) return Math.min(free, 1 - here);
    const silent = paceOf(head, endpointId).pace === "silent";
    return silent ? Math.min(free, Math.ceil(quota * SILENT_SHARE) - here) : free;
  }

  /** Why judgements wait; null if none does. */
  statusReason(spec: RunSpec): RunView["status_reason"] {
    const { inQueue, waiting } = this.traffic(spec);
    const endpoint = judgeStatusReason(this.#store, spec, this.#now());
    return endpoint ?? (waiting > 0 ? this.#leases.judgementStatusReason(inQueue) : null);
  }

  /** Scoring groups that are queued or claimed, and those that could be sent. */
  traffic(spec: RunSpec): Traffic {
    if (spec.judges === undefined) return { inQueue: 0, waiting: 0 };
    const { judging } = this.#store;
    const loads = judging.endpoints().map((one) => judging.load(one, this.#now()));
    const sum = (of: (load: EndpointLoad) => number) => loads.reduce((total, load) => total + of(load), 0);
    return { inQueue: sum((load) => load.under_way), waiting: sum((load) => load.units) };
  }

  /** Scoring groups to send again. */
  reconcile(spec: RunSpec): JudgementOrder[] {
    if (spec.judges === undefined) return [];
    return reconcileJudging(this.#store, spec, this.#now(), LIMITS.sliceObjects).map(
      ({ unit: scoringGroup, endpoint_id }) => {
        return { unit: scoringGroup, ...paceOf(this.#store.head(), endpoint_id) };
      },
    );
  }

  /** When the next step is due, in epoch milliseconds; null if there is none. */
  nextAt(spec: RunSpec): number | null {
    if (spec.judges === undefined) return null;
    const now = this.#now();
    const cancelled = stopsJudging(this.#store.head());
    const unnotified = cancelled && this.#store.judging.unclaimed(1).length > 0;
    const due = this.#askers(spec).map(({ endpoint_id }) =>
      this.#keeperOf(endpoint_id).nextAt([this.#needed(spec, endpoint_id)]),
    );
    const all = [unnotified ? now : null, this.#store.judging.nextAt(now), ...due];
    const known = all.filter((at) => at !== null);
    return known.length === 0 ? null : Math.min(...known);
  }

  /** The endpoints that it uses or has a lease of, each with the identity of the lease's holder. */
  #askers({ judges = {}, scope, run_id }: RunSpec): Asker[] {
    const held = Object.keys(this.#store.head().judge_gates);
    const used = new Set([...held, ...(Object.keys(judges).length === 0 ? [] : this.#store.judging.endpoints())]);
    return [...used].map((endpoint_id) => {
      const target = Object.values(judges).find((judge) => judge.endpoint_id === endpoint_id);
      return { scope, endpoint_id, run_id: judgesOf(run_id), model: target?.model ?? "" };
    });
  }

  #needed(spec: RunSpec, endpointId: string): Needed {
    const { running, waiting } = this.#store.judging.load(endpointId, this.#now());
    const most = maxConcurrentOf(spec, this.#store.head());
    const wants = Math.max(running, Math.min(most, running + waiting));
    return { slot: this.#slotOf(endpointId), need: { running, wants, more: waiting > 0 } };
  }

  #slotOf(endpointId: string): Needed["slot"] {
    return {
      read: () => judgeLeaseOf(this.#store, endpointId),
      write: (lease) => setJudgeLease(this.#store, endpointId, lease),
    };
  }

  #keeperOf(endpointId: string): LeaseKeeper {
    const known = this.#keepers.get(endpointId);
    if (known !== undefined) return known;
    const made = new LeaseKeeper(this.#now);
    this.#keepers.set(endpointId, made);
    return made;
  }
}
