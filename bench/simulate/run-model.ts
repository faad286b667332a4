/**
 * A run: its window, its leases, its shards, its alarm and its messages, by the functions that src/kernel/run uses. Its
 * rollouts have no failures, and their rubric needs no judge and no other rollout.
 */
import { UNCHARGED_EVERY_MS } from "../../src/billing/settling.ts";
import { LIMITS } from "../../src/contract/limits.ts";
import { isArmed } from "../../src/kernel/kit/alarms.ts";
import { GATHER_MS } from "../../src/kernel/kit/gather-wait.ts";
import type { Need } from "../../src/kernel/messages/endpoint-wire.ts";
import { FIRST_ASK_MS, SEGMENT_BYTES } from "../../src/kernel/run/accounting.ts";
import { nextRunAlarm, rowDueAt, rowEveryMs } from "../../src/kernel/run/alarm.ts";
import { DEBOUNCE_MS } from "../../src/kernel/run/debounce.ts";
import { gatherersOf } from "../../src/kernel/run/gathering.ts";
import { InQueue } from "../../src/kernel/run/in-queue.ts";
import { ROLLOUTS_PER_MESSAGE, type Traffic } from "../../src/kernel/run/leases.ts";
import { PLACES_PER_MESSAGE, SCORING_GROUPS_PER_MESSAGE } from "../../src/kernel/run/queues.ts";
import { askAgainAt } from "../../src/kernel/run/reconcile.ts";
import { Shards } from "../../src/kernel/run/shards.ts";
import { COMPUTES, partOfScores, partOfStarts } from "../../src/kernel/service/side-by-side.ts";
import { Heap } from "./agenda.ts";
import type { FleetModel } from "./fleet-model.ts";
import { Follower } from "./follower.ts";
import { type GatheredModelCall, GathererModel } from "./gatherer-model.ts";
import type { AccountModel, EndpointModel } from "./grantors.ts";
import { PlayerModel, type RolloutModel } from "./player-model.ts";
import { COSTS } from "./policies.ts";
import type { Message } from "./queue-model.ts";
import { type Leasing, RunLeasesModel } from "./run-leases-model.ts";
import type { World } from "./world.ts";

export interface RunOf {
  readonly rollouts: number;
  readonly maxConcurrent: number;
  readonly account: AccountModel;
  readonly endpoint: EndpointModel;
  /** Its calls go to a fleet. */
  readonly fleet?: FleetModel;
  readonly onSettled?: () => void;
}

export class RunModel implements Leasing {
  readonly #world: World;
  readonly #of: RunOf;
  readonly id: string;
  readonly #meter;
  readonly #shards = new Shards();
  readonly #players = new Map<number, PlayerModel>();
  readonly #starting = new InQueue<number>();
  readonly #silent = new Heap<RolloutModel>();
  readonly #large: boolean;
  readonly #leases: RunLeasesModel;
  readonly #gatherers: readonly GathererModel[];
  #follower: Follower | null = null;
  #dispatched = 0;
  #running = 0;
  #scoring = 0;
  #finished = 0;
  #segmented = 0;
  #hosts = 0;
  #startMessages = 0;
  #settledAt: number | null = null;
  #ticksSoon = false;
  #armedAt: number | null = null;
  #inAlarm = false;
  #rowStaleAt: number | null = 0;
  #rowVersion = 0;
  #rowTriedAt = 0;
  #createdAt = 0;
  #chargedAt = 0;
  #charged = 0;

  constructor(world: World, of: RunOf) {
    this.#world = world;
    this.#of = of;
    this.id = world.nextId();
    this.#leases = new RunLeasesModel(world, this);
    this.#meter = world.traffic.meter("run");
    const gatherers = gatherersOf({}, of.maxConcurrent);
    this.#gatherers = Array.from({ length: gatherers }, () => new GathererModel(world, () => this.#request()));
    this.#large = world.work.trajectoryBytes > LIMITS.inlineTrajectoryBytes;
  }

  get account(): AccountModel {
    return this.#of.account;
  }

  get endpoint(): EndpointModel {
    return this.#of.endpoint;
  }

  get finished(): number {
    return this.#finished;
  }

  get running(): number {
    return this.#running;
  }

  /** `POST /v1/runs`, and the first tick. */
  create(): void {
    const { traffic, agenda, work } = this.#world;
    const { create } = COSTS;
    this.#createdAt = agenda.now;
    this.#request(create.run_requests);
    this.account.enter(create.audit_requests);
    traffic.count("d1 read: creation of runs", agenda.now, create.d1_reads);
    traffic.count("d1 write: creation of runs", agenda.now, create.d1_writes);
    traffic.count("r2 class A", agenda.now, create.r2_class_a);
    traffic.count("runs", agenda.now);
    this.#rows(45);
    this.#chargedAt = agenda.now;
    this.#tick();
    if (!work.followed) return;
    const isOver = () => this.#settledAt !== null;
    this.#follower = new Follower(this.#world, this.account, () => this.#request(), isOver);
  }

  changed(by: "endpoint" | "account"): void {
    this.#request();
    this.#leases.changed(by);
    this.#soon();
  }

  get #now(): number {
    return this.#world.agenda.now;
  }

  #request(count = 1): void {
    this.#world.traffic.request("run", this.#meter, this.#now, count);
    this.#world.traffic.count("run requests", this.#now, count);
  }

  /** A call whose effect is at the run's object, through a gatherer if it has any. */
  #call(number: number, call: GatheredModelCall): void {
    const gatherer = this.#gatherers[number % Math.max(1, this.#gatherers.length)];
    if (gatherer !== undefined) {
      gatherer.gather(call);
      return;
    }
    this.#request();
    call.effect();
    if (call.replied !== undefined) this.#world.agenda.in(this.#world.latency.request / 2, call.replied);
  }

  /** How much longer a consumer waits for a call, at most. */
  get #gatheringMs(): number {
    return this.#gatherers.length > 0 ? GATHER_MS + this.#world.latency.request : 0;
  }

  #rows(count: number): void {
    this.#world.traffic.count("rows", this.#now, count);
  }

  #soon(): void {
    if (this.#ticksSoon) return;
    this.#ticksSoon = true;
    this.#world.agenda.in(DEBOUNCE_MS, () => {
      this.#ticksSoon = false;
      this.#tick();
    });
  }

  /** What src/kernel/run/ticks.ts does: leases, then what they allow. */
  #tick(): void {
    this.#cutSegments();
    this.#leases.renew(() => this.#goOn());
  }

  #goOn(): void {
    this.#settleMoney();
    this.#dispatch();
    this.#follower?.wake();
    this.#arm();
  }

  get #pending(): number {
    return this.#of.rollouts - this.#dispatched;
  }

  need(): Need {
    const { maxConcurrent } = this.#of;
    const wants = Math.max(this.#running, Math.min(maxConcurrent, this.#running + this.#pending));
    return { running: this.#running, wants: this.#pending === 0 ? this.#running : wants, more: this.#pending > 0 };
  }

  messages(): Traffic {
    if (!this.#isOpen) return { inQueue: 0, waiting: 0 };
    return { inQueue: this.#starting.count, waiting: Math.ceil(this.#startable() / PLACES_PER_MESSAGE) };
  }

  usualMessages(): number {
    return Math.ceil((this.#isOpen ? this.#of.maxConcurrent : 0) / ROLLOUTS_PER_MESSAGE);
  }

  get #isOpen(): boolean {
    return this.#running + this.#scoring > 0 || this.#settledAt === null;
  }

  #startable(): number {
    const window = this.#of.maxConcurrent - this.#running;
    const leased = this.#leases.rolloutsRemaining(this.#running);
    return Math.max(0, Math.min(window, leased, this.#pending, LIMITS.sliceRows));
  }

  #remaining(): number {
    const startable = this.#startable();
    if (startable === 0) return 0;
    return Math.min(startable, Math.max(0, (this.#leases.messages() - this.#starting.count) * PLACES_PER_MESSAGE));
  }

  #dispatch(): void {
    const count = this.#remaining();
    if (count === 0) return;
    const rollouts = Array.from({ length: count }, () => this.#placed());
    this.#running += count;
    this.#leases.dispatched(count);
    this.#noteChange();
    this.#rows(1 + 3 * count);
    for (const rollout of rollouts) this.#silent.add(this.#now + FIRST_ASK_MS, rollout);
    const messages: Message[] = [];
    for (let at = 0; at < count; at += PLACES_PER_MESSAGE) {
      messages.push(this.#startMessage(rollouts.slice(at, at + PLACES_PER_MESSAGE)));
    }
    this.#world.groups.of(this.id).send(messages);
  }

  #placed(): RolloutModel {
    const shard = this.#shards.take(() => {
      this.#hosts += 1;
      return this.#hosts;
    }, this.#world.work.perShard);
    const player =
      this.#players.get(shard) ??
      new PlayerModel(this.#world, this.#of, (ended, replied) => {
        this.#call(shard, { effect: () => this.#answered(ended), replied });
      });
    this.#players.set(shard, player);
    this.#dispatched += 1;
    const { turns } = this.#world.work;
    return {
      player,
      shard,
      turnsLeft: turns,
      startedAt: 0,
      silentUntil: 0,
      asks: 0,
      ended: false,
      key: this.#dispatched,
    };
  }

  /** Admission by the run, the rows of the dataset, and then the starts of all its objects at once. */
  #startMessage(rollouts: readonly RolloutModel[]): Message {
    const { traffic } = this.#world;
    const keys = rollouts.map(({ key }) => key);
    const { run_requests, r2_class_b } = COSTS.start_message;
    this.#starting.sent(keys);
    const reads = this.#startMessages % this.#world.work.objectsPerIsolate === 0 ? r2_class_b : 0;
    this.#startMessages += 1;
    return {
      part: partOfStarts(rollouts.length),
      workMs: (run_requests + 1) * this.#world.latency.request + this.#gatheringMs + reads * this.#world.latency.r2Read,
      begin: () => {
        if (run_requests !== 1) throw new Error("a start message has other calls than the model");
        const effect = () => {
          const wasFull = this.#starting.count >= this.#leases.messages();
          this.#starting.taken(keys);
          if (wasFull) this.#soon();
        };
        this.#call(keys[0] ?? 0, { effect });
        traffic.count("r2 class B", this.#now, reads);
      },
      end: () => {
        for (const [player, of] of Map.groupBy(rollouts, (rollout) => rollout.player)) player.start(of);
      },
    };
  }

  #answered(ended: readonly RolloutModel[]): void {
    const { traffic, work } = this.#world;
    const { turns } = work;
    for (const rollout of ended) {
      rollout.ended = true;
      this.#shards.leave(rollout.shard);
      this.#leases.ended(turns);
    }
    this.#running -= ended.length;
    traffic.count("rollouts", this.#now, ended.length);
    this.#rows(1 + 5 * ended.length + ended.length * (COSTS.rollout.rollout_rows + turns * COSTS.turn.rollout_rows));
    this.#noteChange();
    if (this.#large) this.#toScore(ended.length);
    else this.#finish(ended.length);
    this.#soon();
  }

  /** Trajectories that are objects of R2 are scored by a consumer, in messages of up to 25. */
  #toScore(count: number): void {
    const { traffic, scores } = this.#world;
    const { run_requests, r2_class_b_per_rollout } = COSTS.score_message;
    traffic.count("r2 class A", this.#now, count * COSTS.large_rollout.r2_class_a);
    this.#scoring += count;
    for (let left = count; left > 0; left -= SCORING_GROUPS_PER_MESSAGE) {
      const of = Math.min(left, SCORING_GROUPS_PER_MESSAGE);
      const reads = r2_class_b_per_rollout * of;
      const message: Message = {
        part: partOfScores(of),
        workMs:
          run_requests * (this.#world.latency.request + this.#gatheringMs) +
          Math.ceil(reads / LIMITS.parallelFetches) * this.#world.latency.r2Read,
        begin: () => this.#call(this.#finished, { effect: () => undefined }),
        end: () => {
          if (run_requests !== 2) throw new Error("a message to score has other calls than the model");
          traffic.count("r2 class B", this.#now, reads);
          const effect = () => {
            this.#rows(1 + 2 * of);
            this.#scoring -= of;
            this.#finish(of);
            this.#noteChange();
            this.#soon();
          };
          this.#call(this.#finished, { effect });
        },
      };
      // They are sent by the next tick.
      this.#world.agenda.in(DEBOUNCE_MS, () => scores.of(this.id).send([message]));
    }
  }

  #finish(count: number): void {
    this.#finished += count;
    if (this.#finished < this.#of.rollouts || this.#settledAt !== null) return;
    this.#settledAt = this.#now;
    this.#noteChange();
    this.#of.onSettled?.();
  }

  #cutSegments(): void {
    const { traffic, segments, work } = this.#world;
    const { run_requests, r2_class_a } = COSTS.segment_message;
    const most = Math.max(1, Math.min(LIMITS.segmentRollouts, Math.floor(SEGMENT_BYTES / work.trajectoryBytes)));
    for (;;) {
      const waiting = this.#finished - this.#segmented;
      if (waiting < most && (waiting === 0 || this.#settledAt === null)) return;
      const count = Math.min(waiting, most);
      this.#segmented += count;
      const reads = this.#large ? count : 0;
      const message: Message = {
        part: COMPUTES,
        workMs:
          run_requests * this.#world.latency.request +
          r2_class_a * this.#world.latency.r2Write +
          Math.ceil(reads / LIMITS.parallelFetches) * this.#world.latency.r2Read,
        begin: () => this.#request(),
        end: () => {
          this.#request(run_requests - 1);
          this.#rows(4);
          traffic.count("r2 class A", this.#now, r2_class_a);
          traffic.count("r2 class B", this.#now, reads);
        },
      };
      segments.of(this.id).send([message]);
    }
  }

  #noteChange(): void {
    this.#rowStaleAt ??= this.#now;
    this.#rowVersion += 1;
  }

  #nextLeaseAt(): number | null {
    const due = [this.#leases.nextAt(), this.#chargeAt()].filter((at) => at !== null);
    return due.length === 0 ? null : Math.min(...due);
  }

  /** When ends are reported to the ledger of an organisation that is charged nothing. */
  #chargeAt(): number | null {
    if (this.#charged === this.#finished) return null;
    return this.#settledAt === null ? this.#chargedAt + UNCHARGED_EVERY_MS : this.#now;
  }

  #settleMoney(): void {
    const at = this.#chargeAt();
    if (at === null || at > this.#now) return;
    this.#charged = this.#finished;
    this.#chargedAt = this.#now;
    this.#of.account.settle();
  }

  #clock() {
    for (let first = this.#silent.peek(); first?.ended === true; first = this.#silent.peek()) this.#silent.take();
    return {
      now: this.#now,
      askAt: this.#silent.size === 0 ? null : this.#silent.first,
      rowStaleAt: this.#rowStaleAt,
      rowTriedAt: this.#rowTriedAt,
      rowEveryMs: rowEveryMs(this.#now - this.#createdAt),
      rowFailures: 0,
      notifyAt: null,
      releaseAt: null,
      unnotified: false,
      canDispatch: this.#remaining() > 0,
      freeAt: null,
      endpointAt: this.#nextLeaseAt(),
      judgeAt: null,
      reclaimAt: null,
      trainingAt: null,
      deadlineAt: null,
    };
  }

  #arm(): void {
    if (this.#inAlarm) return;
    const at = nextRunAlarm(this.#clock());
    if (at === null || isArmed(this.#armedAt, at, this.#now)) return;
    this.#armedAt = at;
    this.#rows(1);
    this.#world.agenda.at(at, () => {
      // It was set to another time since.
      if (this.#armedAt === at) this.#alarm();
    });
  }

  /** One alarm at a time: it asks one slice of silent rollouts, and writes the run's row. */
  #alarm(): void {
    this.#armedAt = null;
    this.#inAlarm = true;
    this.#request();
    const askedMs = this.#askSilent();
    this.#world.agenda.in(askedMs, () => {
      this.#writeRow(() => {
        this.#inAlarm = false;
        this.#tick();
      });
    });
  }

  #askSilent(): number {
    const rows: RolloutModel[] = [];
    while (rows.length < LIMITS.sliceObjects && this.#silent.first <= this.#now) {
      const row = this.#silent.take();
      if (row !== undefined && !row.ended) rows.push(row);
    }
    for (const [player] of Map.groupBy(rows, ({ player: one }) => one)) player.ask();
    for (const row of rows) {
      this.#silent.add(askAgainAt(row.asks, row.silentUntil, this.#now), row);
      row.asks += 1;
    }
    this.#rows(2 * rows.length);
    return rows.length === 0 ? 0 : this.#world.latency.request;
  }

  #writeRow(then: () => void): void {
    const at = rowDueAt({
      rowStaleAt: this.#rowStaleAt,
      rowTriedAt: this.#rowTriedAt,
      rowEveryMs: rowEveryMs(this.#now - this.#createdAt),
      rowFailures: 0,
    });
    if (at === null || at > this.#now) {
      then();
      return;
    }
    const version = this.#rowVersion;
    this.#world.traffic.count("d1 write: rows of runs", this.#now, COSTS.run_row.d1_writes);
    this.#world.agenda.in(this.#world.latency.d1, () => {
      if (this.#rowVersion === version) this.#rowStaleAt = null;
      this.#rowTriedAt = this.#now;
      this.#rows(1);
      then();
    });
  }
}
