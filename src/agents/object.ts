/**
 * The queue of a project's rollouts for its agents: which of them wait for a worker, and which worker has each.
 *
 * Invariants. The rollout's own object decides which lease counts, and what is here can be made again: a rollout offers
 * itself until a worker has it. A lease that was assigned and not taken, because the process was killed in between, is
 * assigned again when its time is over. A worker that is silent for the time of a lease loses it. Rollouts are assigned
 * in the order of their offers. While rollouts wait for a worker, webhooks get an event once a minute, for services that do
 * not poll.
 */
import type { OutboundEventName } from "../contract/outbound-event.ts";
import type { Scope } from "../contract/scope.ts";
import { isAtRest, untilTheNextBoot } from "../kernel/kit/at-rest.ts";
import { logError } from "../kernel/kit/log.ts";
import { rolloutShard } from "../kernel/kit/names.ts";
import { Rows } from "../kernel/kit/rows.ts";
import { sha256Hex } from "../kernel/kit/secrets.ts";
import { emitEvents, isWanted, type OutboundEvent } from "../kernel/kit/slice-hooks.ts";
import { StoredObject } from "../kernel/kit/stored-object.ts";
import { Subrequests } from "../kernel/kit/subrequests.ts";
import { Tombstone } from "../kernel/kit/tombstone.ts";
import type { Serves } from "../kernel/messages/rpc.ts";
import { WaitingReaders } from "../kernel/run/pages.ts";
import type { AgentsRpc, LeasedOffer, OfferedRollout } from "./rpc.ts";
import type { AgentHeartbeat, AgentLeaseRequest, LeaseStates } from "./wire.ts";

/** How long an assigned lease may take until its rollout's object has it. */
const ASSIGNED_MS = 30_000;
/** Expired leases that one alarm handles. */
const EXPIRED_AT_ONCE = 100;
/** An alarm that failed is tried again after this. */
const AGAIN_MS = 10_000;
const SCOPE = "scope";
/** Time from an offer to the first event about waiting rollouts, and from one event to the next. */
const TOLD_AFTER_MS = 1000;
const TOLD_AGAIN_MS = 60_000;
const TOLD_AT_ONCE = 100;
const WAITING = "agent.waiting" satisfies OutboundEventName;

type Row = {
  readonly rollout: string;
  readonly offer: string;
  /** 0: it waits for a worker, or its worker has not taken it yet. */
  readonly lease: number;
  readonly worker: string | null;
  /** When its lease ends, in epoch milliseconds; null while it waits. */
  readonly until: number | null;
};

export class AgentsObject extends StoredObject implements Serves<AgentsRpc> {
  /** The clock; tests replace it. */
  now: () => number = () => Date.now();
  readonly #rows: Rows;
  readonly #tombstone: Tombstone;
  readonly #waiting = new WaitingReaders();
  /** Requests of workers for rollouts. */
  readonly #requests = new Set<{ readonly worker: string; isOver: boolean }>();
  #made = false;
  /** When the next event about waiting rollouts is due, in epoch milliseconds; null: at the next alarm. */
  #tellAt: number | null = null;

  constructor(state: DurableObjectState, env: Env) {
    super(state, env);
    this.#rows = new Rows(state.storage.sql);
    this.#tombstone = new Tombstone(state.storage);
  }

  async offer(scope: Scope, name: string, rollout: OfferedRollout): Promise<void> {
    if (this.#tombstone.stands) return;
    this.#make(scope);
    const row = {
      rollout: rollout.rollout_id,
      name,
      offer: JSON.stringify(rollout),
      lease: 0,
      worker: null,
      until: null,
    };
    this.#rows.insert("queue", row, "ignore");
    this.#waiting.wake();
    if (this.#tellAt !== null) return;
    this.#tellAt = this.now() + TOLD_AFTER_MS;
    await this.#arm();
  }

  async lease(
    scope: Scope,
    name: string,
    { worker, max, wait_s }: AgentLeaseRequest,
    again = false,
  ): Promise<LeasedOffer[]> {
    const until = this.now() + wait_s * 1000;
    if (again && this.#isMade()) this.#rows.set("queue", { name }, { worker: null, until: null });
    const request = { worker, isOver: false };
    this.#requests.add(request);
    try {
      for (;;) {
        const leased = request.isOver ? [] : await this.#assign(scope, name, worker, max);
        const left = until - this.now();
        if (leased.length > 0 || left <= 0 || request.isOver) return leased;
        await this.#waiting.next(left);
      }
    } finally {
      this.#requests.delete(request);
    }
  }

  async heartbeat({ worker, leases }: AgentHeartbeat): Promise<LeaseStates["data"]> {
    const states = leases.map((held): LeaseStates["data"][number] => {
      const row = this.#find(held.rollout_id);
      const isHeld = row?.lease === held.lease && row.worker === worker && row.until !== null;
      if (!isHeld) return { ...held, state: row === null ? "ended" : "lost", expires_at: null };
      const expires_at = this.now() + offerOf(row).lease_s * 1000;
      this.#rows.set("queue", { rollout: row.rollout }, { until: expires_at });
      return { ...held, state: "held", expires_at };
    });
    await this.#arm();
    return states;
  }

  async release(scope: Scope, request: AgentHeartbeat): Promise<LeaseStates["data"]> {
    // The worker stops: what it gives back must not be assigned to a request of its own that still waits.
    for (const waiting of this.#requests) if (waiting.worker === request.worker) waiting.isOver = true;
    this.#waiting.wake();
    const states = await this.heartbeat(request);
    const held = states.filter(({ state }) => state === "held");
    await new Subrequests().objectAll(held, ({ rollout_id }) => this.#lapse(scope, rollout_id, false));
    return states.map((one) => (one.state === "held" ? { ...one, state: "lost", expires_at: null } : one));
  }

  ended(rollout_id: string): void {
    if (this.#isMade()) this.ctx.storage.sql.exec("delete from queue where rollout = ?", rollout_id);
  }

  async free(): Promise<boolean> {
    if (this.#isMade()) await this.#tombstone.set(this.now());
    this.#made = false;
    this.#waiting.wake();
    return true;
  }

  override async alarm(): Promise<void> {
    if (isAtRest(this.env)) await untilTheNextBoot();
    if (await this.#tombstone.decay(this.now())) return;
    const scope = this.ctx.storage.kv.get<Scope>(SCOPE);
    if (scope === undefined || !this.#isMade()) return;
    try {
      const query = "select * from queue where until <= ? order by until limit ?";
      const expired = this.#rows.all<Row>(query, this.now(), EXPIRED_AT_ONCE);
      const subrequests = new Subrequests();
      await subrequests.objectAll(expired, ({ rollout }) => this.#lapse(scope, rollout, true));
      if (this.now() >= (this.#tellAt ?? 0)) await this.#tell(scope, subrequests);
    } catch (thrown) {
      logError("expired leases of agents", { project_id: scope.projectId }, thrown);
      await this.ctx.storage.setAlarm(this.now() + AGAIN_MS);
      return;
    }
    await this.#arm();
  }

  /** Sends an event for each agent that has waiting rollouts. */
  async #tell(scope: Scope, subrequests: Subrequests): Promise<void> {
    const query = "select name, count(*) as waiting from queue where until is null group by name order by name limit ?";
    const names = this.#rows.all<{ name: string; waiting: number }>(query, TOLD_AT_ONCE);
    this.#tellAt = names.length === 0 ? null : this.now() + TOLD_AGAIN_MS;
    if (names.length === 0 || !(await isWanted(this.env, scope, [WAITING], subrequests))) return;
    const at = this.now();
    const minute = Math.floor(at / TOLD_AGAIN_MS);
    const events = names.map(({ name, waiting }): OutboundEvent => {
      const id = `evt_${sha256Hex(`${WAITING} ${scope.projectId} ${name} ${minute}`)}`;
      return { id, type: WAITING, at, subject: `agent ${name}`, data: { agent: name, waiting } };
    });
    await emitEvents(this.env, scope, events, subrequests);
  }

  /** Assigns waiting rollouts to a worker, and returns those that their objects gave it. */
  async #assign(scope: Scope, name: string, worker: string, max: number): Promise<LeasedOffer[]> {
    if (!this.#isMade()) return [];
    const query = "select * from queue where name = ? and until is null order by rowid limit ?";
    const rows = this.#rows.all<Row>(query, name, max);
    if (rows.length === 0) return [];
    const assigned = { worker, lease: 0, until: this.now() + ASSIGNED_MS };
    for (const { rollout } of rows) this.#rows.set("queue", { rollout }, assigned);
    await this.#arm();
    const shards = [...Map.groupBy(rows.map(offerOf), ({ run_id, host }) => `${run_id}/${host}`).values()];
    const leased = await new Subrequests().objectAll(shards, (offers) => this.#take(scope, worker, offers));
    await this.#arm();
    return leased.flat();
  }

  async #take(scope: Scope, worker: string, offers: readonly OfferedRollout[]): Promise<LeasedOffer[]> {
    const [first] = offers;
    if (first === undefined) return [];
    const shard = rolloutShard(this.env, scope, first.run_id, first.host, first.fleet);
    const taken = await shard.takeForAgent(offers.map(({ rollout_id }) => ({ rollout_id, worker })));
    return offers.flatMap((offer, at) => {
      const own = taken[at] ?? null;
      // It has ended meanwhile.
      if (own === null) this.ended(offer.rollout_id);
      if (own === null) return [];
      const expires_at = this.now() + offer.lease_s * 1000;
      this.#rows.set("queue", { rollout: offer.rollout_id }, { lease: own.lease, until: expires_at });
      return [{ ...offer, ...own, expires_at }];
    });
  }

  /** The worker lost the rollout or gave it back: another one may take it, unless the rollout says that it ends. */
  async #lapse(scope: Scope, rollout_id: string, isLost: boolean): Promise<void> {
    const row = this.#find(rollout_id);
    if (row === null) return;
    const { run_id, host, fleet } = offerOf(row);
    const again =
      row.lease === 0 ||
      (await rolloutShard(this.env, scope, run_id, host, fleet).lapseForAgent(rollout_id, row.lease, isLost));
    // A heartbeat may have arrived meanwhile.
    const current = this.#find(rollout_id);
    if (current?.until !== row.until) return;
    if (again) this.#rows.set("queue", { rollout: rollout_id }, { worker: null, until: null });
    else this.ended(rollout_id);
    this.#waiting.wake();
  }

  #find(rollout_id: string): Row | null {
    return this.#isMade() ? this.#rows.one<Row>("select * from queue where rollout = ?", rollout_id) : null;
  }

  async #arm(): Promise<void> {
    if (!this.#isMade()) return;
    const { at } = this.#rows.one<{ at: number | null }>("select min(until) as at from queue") ?? { at: null };
    const first = Math.min(at ?? Number.POSITIVE_INFINITY, this.#tellAt ?? Number.POSITIVE_INFINITY);
    if (Number.isFinite(first)) await this.ctx.storage.setAlarm(Math.max(first, this.now()));
  }

  #isMade(): boolean {
    this.#made ||= this.#rows.one("select 1 from sqlite_master where name = 'queue'") !== null;
    return this.#made;
  }

  #make(scope: Scope): void {
    if (this.#isMade()) return;
    this.ctx.storage.kv.put(SCOPE, scope);
    this.ctx.storage.sql.exec(
      `create table queue (
        rollout text primary key, name text not null, offer text not null, lease integer not null, worker text,
        until integer)`,
    );
    this.ctx.storage.sql.exec("create index queue_waiting on queue (name, until)");
    this.ctx.storage.sql.exec("create index queue_until on queue (until)");
    this.#made = true;
  }
}

/** Only this object writes the rows. */
function offerOf({ offer }: Pick<Row, "offer">): OfferedRollout {
  return JSON.parse(offer) as OfferedRollout;
}
