/** An object that plays rollouts (src/kernel/rollout/object.ts), and its rollouts. A turn is only time that passes. */
import { gatherWaitMs } from "../../src/kernel/kit/gather-wait.ts";
import { ALARM_MS } from "../../src/kernel/rollout/alarm-time.ts";
import { reportsApartMs } from "../../src/kernel/rollout/debounced.ts";
import { type FleetModel, HolderModel } from "./fleet-model.ts";
import type { AccountModel } from "./grantors.ts";
import type { SettingsModel } from "./settings-model.ts";
import type { Meter } from "./traffic.ts";
import type { World } from "./world.ts";

export interface RolloutModel {
  readonly player: PlayerModel;
  /** The number of its object. */
  readonly shard: number;
  turnsLeft: number;
  /** When its first turn began; 0 before. */
  startedAt: number;
  /** When its current call would time out; 0 if none is under way. */
  silentUntil: number;
  /** How often its run has asked for its state. */
  asks: number;
  /** Its run has its report. */
  ended: boolean;
  /** Its number in the run. */
  readonly key: number;
  /** Called when its current call is answered; made once, since there are millions of turns. */
  answered?: () => void;
  /** Its last call on a fleet. */
  call?: { readonly number: number; readonly replica: string };
}

/** `replied`: must be called when the reply is back at the player. */
type Report = (ended: readonly RolloutModel[], replied: () => void) => void;

export class PlayerModel {
  readonly #world: World;
  readonly meter: Meter;
  readonly #account: AccountModel;
  readonly #settings: SettingsModel;
  readonly #holder: HolderModel | null;
  readonly #report: Report;
  #begunAt: number | null = null;
  #playing = 0;
  #due: RolloutModel[] = [];
  #ended: RolloutModel[] = [];
  #reportsAt = Number.POSITIVE_INFINITY;
  #reportedAt = Number.NEGATIVE_INFINITY;

  /** `report`: called when a report arrives at the run. */
  constructor(
    world: World,
    { account, fleet }: { readonly account: AccountModel; readonly fleet?: FleetModel },
    report: Report,
  ) {
    this.#world = world;
    this.meter = world.traffic.meter("rollout");
    this.#account = account;
    this.#settings = world.joinIsolate();
    this.#holder = fleet === undefined ? null : new HolderModel(world, fleet);
    this.#report = report;
  }

  start(rollouts: readonly RolloutModel[]): void {
    this.#request();
    this.#due.push(...rollouts);
    if (this.#begunAt === null) this.#alarm();
    else if (this.#mayBegin()) this.#playDue();
  }

  /** The run asks for the state of rollouts. */
  ask(): void {
    this.#request();
  }

  #request(): void {
    const { agenda, traffic } = this.#world;
    traffic.request("rollout", this.meter, agenda.now);
  }

  #alarm(): void {
    this.#request();
    this.#world.traffic.count("rows", this.#world.agenda.now);
    this.#begunAt = this.#world.agenda.now;
    this.#playDue();
  }

  #playDue(): void {
    for (const rollout of this.#due.splice(0)) {
      this.#playing += 1;
      this.#turn(rollout);
    }
  }

  #mayBegin(): boolean {
    const { agenda, work } = this.#world;
    return agenda.now + work.callTimeoutMs <= (this.#begunAt ?? 0) + ALARM_MS;
  }

  #turn(rollout: RolloutModel): void {
    const { agenda, work } = this.#world;
    const { now } = agenda;
    if (now >= this.#world.from) this.#world.turns += 1;
    this.#settings.use(this.#account);
    if (rollout.startedAt === 0) rollout.startedAt = now;
    rollout.silentUntil = now + work.callTimeoutMs;
    rollout.answered ??= () => this.#answered(rollout);
    const { answered } = rollout;
    if (this.#holder === null) {
      if (work.answer === undefined) agenda.in(work.turnMs(), answered);
      else work.answer(agenda, answered);
      return;
    }
    const last_replica = rollout.call?.replica ?? null;
    const caller = { rollout_id: String(rollout.key), last_replica, wait_ms: work.callTimeoutMs };
    this.#holder.take(caller, (number, replica) => {
      rollout.call = { number, replica };
      agenda.in(work.turnMs(), answered);
    });
  }

  #answered(rollout: RolloutModel): void {
    if (rollout.call !== undefined) this.#holder?.end(rollout.call.number);
    rollout.turnsLeft -= 1;
    if (rollout.turnsLeft > 0 && this.#mayBegin()) {
      this.#turn(rollout);
      return;
    }
    rollout.silentUntil = 0;
    if (rollout.turnsLeft === 0) {
      if (this.#holder === null) this.#toReport(rollout);
      else this.#holder.settle(String(rollout.key), () => this.#toReport(rollout));
      return;
    }
    this.#due.push(rollout);
    this.#left(1);
  }

  /** Reports that come at about the same time are one request; if no other rollout plays here, none is awaited. */
  #toReport(rollout: RolloutModel): void {
    this.#ended.push(rollout);
    if (this.#ended.length >= this.#playing) this.#sendReports();
    else {
      const { now } = this.#world.agenda;
      const apart = reportsApartMs({ started_at: rollout.startedAt, ended_at: now });
      const at = now + gatherWaitMs(now - this.#reportedAt, apart);
      if (at >= this.#reportsAt) return;
      this.#reportsAt = at;
      this.#world.agenda.at(at, () => {
        if (this.#reportsAt === at) this.#sendReports();
      });
    }
  }

  #sendReports(): void {
    this.#reportsAt = Number.POSITIVE_INFINITY;
    const ended = this.#ended.splice(0);
    if (ended.length === 0) return;
    this.#reportedAt = this.#world.agenda.now;
    this.#world.agenda.in(this.#world.latency.request / 2, () => this.#report(ended, () => this.#left(ended.length)));
  }

  #left(count: number): void {
    this.#playing -= count;
    if (this.#playing > 0) return;
    const { agenda, traffic } = this.#world;
    traffic.count("player ms", agenda.now, agenda.now - (this.#begunAt ?? agenda.now));
    this.#begunAt = null;
    if (this.#due.length > 0) this.#alarm();
  }
}
