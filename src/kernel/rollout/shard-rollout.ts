/**
 * One rollout, in the object that plays it (object.ts).
 *
 * Invariants. `play` never throws: an error ends this rollout or is retried later, and does not affect the other
 * rollouts. The final report is repeated until the run acknowledges it. If a value can never be stored or reported, the
 * rollout ends with a report that can.
 */

import {
  type CancelReason,
  EnvError,
  type FailureClass,
  RolloutError,
  type SerializedError,
  serializeError,
} from "../../contract/errors.ts";
import { deepFreeze } from "../../contract/json.ts";
import { LIMITS } from "../../contract/limits.ts";
import { NOTHING_REPORTED } from "../../contract/trajectory.ts";
import type { EnvironmentCode, EnvironmentDescription } from "../../core/protocol/environment-code.ts";
import { noteEnds, withEnds } from "../../core/rollout/call-ends.ts";
import { forkedRollout } from "../../core/rollout/fork.ts";
import { newRollout, type Rollout, trajectoryOf } from "../../core/rollout/rollout.ts";
import type { ScoreRecord } from "../../core/rubrics/score.ts";
import { charactersOf, sizeOf } from "../../core/size.ts";
import { callHolder, endpointOpener, type OpenEndpoint } from "../endpoint/call.ts";
import { openMeans, rolloutFetch } from "../environment/capabilities.ts";
import { pinnedEnvironment } from "../environment/environments.ts";
import { makeTask, playerOf } from "../environment/make-task.ts";
import { toolsFor } from "../environment/offered-tools.ts";
import type { Quarantine } from "../environment/quarantine.ts";
import { longestStepMs, rolloutTimeMs, StageClock, stageTimes } from "../environment/stage-clock.ts";
import { BYTES_PER_CHARACTER, isolateMemory } from "../kit/isolate-memory.ts";
import { idsOf, logError } from "../kit/log.ts";
import { Semaphore, unlessAborted } from "../kit/semaphore.ts";
import { agents, fleets } from "../kit/slice-hooks.ts";
import { RefusedValueError } from "../kit/storage-faults.ts";
import type { Subrequests } from "../kit/subrequests.ts";
import type { AgentCall, AgentFinish, AgentReply, FinishReply, TakenRollout } from "../messages/agent-wire.ts";
import type { Reach } from "../messages/endpoint-wire.ts";
import type { Answered } from "../messages/rpc.ts";
import type { BudgetReply, RolloutBudgetAsk, RolloutReport, RolloutSpec, UnspentBudget } from "../messages/wire.ts";
import { scoreInPlace } from "../scoring/score-in-place.ts";
import {
  bareReport,
  finishedTrajectory,
  NOTHING_LEFT,
  reportOf,
  storableTrajectory,
} from "../trajectory/rollout-report.ts";
import { storeTrajectory } from "../trajectory/store.ts";
import { AgentDesk } from "./agent-desk.ts";
import { describeEnd, refusalOfFinish } from "./agent-finish.ts";
import { AnswerCache } from "./answer-cache.ts";
import { spendingOf, withoutRest } from "./call-budget.ts";
import { type CallBudgeting, endedWithoutHooks, RolloutDriver } from "./driver.ts";
import { dryRun, quarantineOf } from "./dry-run.ts";
import type { FactsTable } from "./facts.ts";
import { type FailedTries, faultOf, NO_TRIES, platformWaitMs, type RolloutFault, withFailed } from "./fault.ts";
import { ASK_AGAIN_MS, MemoryReservation, mostCharactersOf, sizeInMemory } from "./memory-reservation.ts";
import { callSizer, endpointReach, modelCaller, type Offer } from "./model-call.ts";
import { dropDatabase, sqlOf } from "./sql-object.ts";
import { RolloutStore } from "./store.ts";

/** What the object offers to its rollouts. */
export interface Shard {
  readonly ctx: DurableObjectState;
  readonly env: Env;
  readonly now: () => number;
  readonly table: FactsTable;
  /** All outside calls of the object go through it: those of one rollout wait for those of others. */
  readonly calls: Subrequests;
  /** How many of the object's connections one rollout's hooks may use at once. */
  readonly share: () => number;
  /** True if a step of at most this many milliseconds may begin: false once the object hands over to its next alarm. */
  readonly mayBegin: (longestMs: number) => boolean;
  /** Lets the rollout continue at once. */
  readonly wake: () => Promise<void>;
  /** Requests a higher ceiling from the run. */
  readonly allow: (spec: RolloutSpec, ask: RolloutBudgetAsk) => Promise<BudgetReply>;
  /** Sends the final report to the run. */
  readonly report: (spec: RolloutSpec, report: RolloutReport) => Promise<Answered>;
}

const TOO_MANY_CALLS: AgentReply = {
  kind: "refused",
  status: 429,
  code: "rate_limited",
  message: "too many model calls of agents wait for their answers: try again later",
};

export class ShardRollout {
  readonly #shard: Shard;
  readonly #store: RolloutStore;
  readonly #memory: MemoryReservation;
  #longestMs: number | null = null;
  #driver: RolloutDriver | null = null;
  #clock: StageClock | null = null;
  #answers: AnswerCache | null = null;
  #playing = false;
  /** True: its alarm was started before, and its process died. */
  #again = false;
  #ownsDatabase = false;
  /** Whether the last reply to this instance came whole; undefined: there was none. */
  #repliesWhole: boolean | undefined;
  /** Limits the calls of its hooks. */
  readonly #ownCalls: Semaphore;
  readonly #desk: AgentDesk;

  /** For a rollout that was begun, or is about to be. */
  constructor(shard: Shard, id: string) {
    this.#shard = shard;
    this.#store = new RolloutStore(shard.table, id);
    this.#memory = new MemoryReservation(shard.env, id, shard.now);
    this.#ownCalls = new Semaphore(shard.share);
    const { env, now, wake } = shard;
    const mayLinger = (ms: number) => shard.mayBegin(ms + this.longestMs);
    this.#desk = new AgentDesk({ env, store: this.#store, now, wake, mayLinger });
  }

  begin(spec: RolloutSpec): void {
    this.#store.begin(spec);
  }

  /** True once the run has acknowledged its report. */
  get over(): boolean {
    return this.#store.acknowledged();
  }

  /** True once it was cancelled. */
  get cancelled(): boolean {
    return this.#store.cancelRequest() !== null;
  }

  /** The longest time of its next step, in milliseconds, without closing, which has its own limit. */
  get longestMs(): number {
    this.#longestMs ??= this.#looked(() => longestStepMs(this.#store.spec().limits));
    return this.#longestMs;
  }

  /** The latest time of its next event, in epoch milliseconds; null while it is not played. */
  get nextEventAt(): number | null {
    return this.#playing ? (this.#driver?.nextEventAt ?? this.#shard.now()) : null;
  }

  get orgId(): string {
    return this.#looked(() => this.#store.spec().scope.orgId);
  }

  get model(): string {
    return this.#looked(() => this.#store.spec().model);
  }

  /** The state that is on disk by the time this is answered. */
  read(): Rollout | null {
    this.#store.keepAnswer();
    return this.#looked(() => this.#store.load());
  }

  /** Returns what `look` reads, and drops the rollout from memory unless it is played. */
  #looked<T>(look: () => T): T {
    const seen = look();
    if (!this.#memory.isHeld) this.#store.letGo();
    return seen;
  }

  /** Writes the last answer to disk. */
  keepAnswer(): void {
    this.#store.keepAnswer();
  }

  async cancel(reason: CancelReason): Promise<void> {
    if (this.over) return;
    this.#store.requestCancel(reason);
    this.#driver?.cancel(reason);
    this.#desk.interrupt();
    // A rollout that waits for its next try must continue now, and so must one that is about to wait.
    await this.#shard.wake();
  }

  /** Leases the rollout to a worker of its agent; null if none can play it now. */
  async takeForAgent(): Promise<TakenRollout | null> {
    const [spec, rollout] = this.#looked(() => [this.#store.spec(), this.#store.load()]);
    if (this.over || this.cancelled) return null;
    return await this.#desk.take(spec, rollout, (leasedAt) => leasedAt + rolloutTimeMs(spec.limits, null));
  }

  /** A call is in memory until it is answered, and an agent may make many large ones at once. */
  async callForAgent(lease: number, call: AgentCall): Promise<AgentReply> {
    const bytes = BYTES_PER_CHARACTER * (charactersOf(call.messages) + sizeOf(call.tools));
    const place = await isolateMemory(this.#shard.env).calls.wait(this.orgId, LIMITS.bodyWaitMs, {}, bytes);
    if (place === null) return TOO_MANY_CALLS;
    try {
      const [spec, rollout] = this.#looked(() => [this.#store.spec(), this.#store.load()]);
      return await this.#desk.call(lease, call, spec, this.cancelled ? null : rollout);
    } finally {
      place.leave();
    }
  }

  async finishForAgent(lease: number, finish: AgentFinish): Promise<FinishReply> {
    const rubric = finish.reported === null || this.over ? [] : await this.#rubric();
    const rollout = this.#looked(() => this.#store.load());
    const isOver = rollout === null || rollout.phase === "close" || rollout.phase === "done";
    if (this.#store.cancelRequest() === "overload" && this.#store.agent().finish === null) {
      return { over: "cancelled: overload" };
    }
    // A repeat of the request that ended it gets the same answer.
    if (isOver && this.#store.agent().finish === null) return { over: describeEnd(rollout) };
    const refused = rollout === null || isOver ? null : refusalOfFinish(finish, rollout, rubric);
    const { leases, finish: earlier } = this.#store.agent();
    if (refused !== null && earlier === null && lease === leases) return { refused };
    return await this.#desk.finish(lease, finish);
  }

  async #rubric(): Promise<EnvironmentDescription["scores"]> {
    const environment = await pinnedEnvironment(
      this.#shard.env,
      this.#looked(() => this.#store.spec()),
    );
    return environment?.description.scores ?? [];
  }

  async lapseForAgent(lease: number, isLost: boolean): Promise<boolean> {
    if (this.over || this.cancelled) return false;
    return await this.#desk.lapse(
      lease,
      isLost,
      this.#looked(() => this.#store.spec()),
    );
  }

  /** Gives back the budget that it does not use while its agent does nothing; null if a call or its end is under way. */
  giveBack(): UnspentBudget | null {
    const rollout = this.#looked(() => this.#store.load());
    if (this.over || this.cancelled || rollout === null || !this.#desk.isIdle(rollout)) return null;
    // A worker that lost its lease may have made it.
    if (this.#driver?.isCalling === true) return null;
    const { asks, spent, ceiling } = this.#store.callBudget();
    if (ceiling > spent) {
      this.#store.setCallBudget(withoutRest(this.#store.callBudget()));
      this.#store.save(rollout);
    }
    if (!this.#memory.isHeld) this.#store.letGo();
    return { asks, spent };
  }

  /** Ends the wait for the run's cap; other waits continue. */
  async askAgain(first: boolean): Promise<void> {
    const callBudget = this.#looked(() => this.#store.callBudget());
    if (first) this.#store.setCallBudget(withoutRest(callBudget));
    if (first || callBudget.again_at <= this.#shard.now()) return;
    this.#store.setCallBudget({ ...callBudget, again_at: 0 });
    await this.#shard.wake();
  }

  /**
   * Plays the rollout until it is over (null) or must wait (until when, in epoch milliseconds). `again`: the alarm was
   * started before, and its process died. Throws only if its stored state cannot be read.
   */
  async play(again: boolean): Promise<number | null> {
    const { until = 0 } = this.#store.failedTries();
    // The wait of an earlier instance. The alarm came early, for other rollouts of the object.
    if (until > this.#shard.now() && !this.cancelled) return until;
    this.#playing = true;
    this.#again ||= again;
    try {
      if (!(await this.#hasMemory())) return this.#shard.now() + ASK_AGAIN_MS;
      await this.#memory.turn();
      const wakeAt = await this.#run(this.#store.spec(), again);
      this.#noteTries(NO_TRIES);
      return wakeAt;
    } catch (thrown) {
      return await this.#failedWith(this.#store.spec(), thrown);
    } finally {
      await this.#answers?.settled();
      this.#answers = null;
      this.#memory.leave();
      this.#store.letGo();
      this.#playing = false;
      this.#driver = null;
      this.#clock?.close();
      this.#clock = null;
    }
  }

  /** While a rollout waits for memory it does not hold its row: it is read again after the wait. */
  #hasMemory(): Promise<boolean> {
    const { scope, characters = 0 } = this.#store.spec();
    const mayWait = () => this.#shard.mayBegin(this.longestMs);
    return this.#memory.enter(scope.orgId, characters, mayWait, () => this.#store.letGo());
  }

  /** A temporary error is waited for; any other ends the rollout. */
  async #failedWith(spec: RolloutSpec, thrown: unknown): Promise<number | null> {
    const tries = withFailed(this.#store.failedTries(), thrown);
    try {
      this.#store.keepAnswer();
      if (await this.#endedBy(spec, faultOf(thrown, tries))) {
        logError("rollout ended", idsOf(spec), thrown);
        return null;
      }
    } catch (again) {
      logError("rollout cannot be ended", idsOf(spec), again);
    }
    // The runtime repeats a failed alarm six times, then drops it; so the tries are counted here.
    logError("rollout waits for the platform", idsOf(spec), thrown);
    const until = this.#shard.now() + platformWaitMs(tries.failed);
    this.#noteTries({ ...tries, until });
    return until;
  }

  async #endedBy(spec: RolloutSpec, fault: RolloutFault): Promise<boolean> {
    if (fault.kind === "waits") return false;
    const stored = this.#store.load();
    if (fault.kind === "environment") {
      const rollout = this.#ended(spec, stored, "environment", fault.error);
      this.#store.save(rollout);
      await this.#report(spec, rollout);
    } else {
      const report = reportOf(spec, stored ?? this.#bareRollout(spec), NOTHING_LEFT, null);
      await this.#sendReport(spec, bareReport(report, fault.why));
    }
    return true;
  }

  #noteTries(tries: FailedTries): void {
    try {
      this.#store.noteTries(tries);
    } catch (thrown) {
      logError("tries are counted in memory", idsOf(this.#store.spec()), thrown);
    }
  }

  /** `again`: this alarm was started before, and its process died. */
  async #run(spec: RolloutSpec, again: boolean): Promise<number | null> {
    const stored = this.#store.load();
    const bare = () => stored ?? this.#bareRollout(spec);
    const ended = await dryRun(this.#shard.env, spec, this.#circumstances(again), stored, bare, this.#shard.now);
    if (ended !== null) return await this.#report(spec, ended, true);
    if (stored?.phase === "done") return await this.#report(spec, stored);
    const begun = await this.#begin(spec, stored, again);
    if (begun.rollout.phase === "done" || begun.driver === null) {
      return await this.#report(spec, begun.rollout);
    }
    this.#driver = begun.driver;
    const drive = await begun.driver.drive(begun.rollout);
    if ("wakeAt" in drive) return drive.wakeAt;
    this.#desk.close(drive.done);
    return await this.#report(spec, drive.done);
  }

  async #begin(
    spec: RolloutSpec,
    stored: Rollout | null,
    again: boolean,
  ): Promise<{ rollout: Rollout; driver: RolloutDriver | null }> {
    const environment = await pinnedEnvironment(this.#shard.env, spec);
    if (environment === null) return { rollout: this.#changed(spec, stored), driver: null };
    const rollout = stored ?? (await this.#newRollout(spec, environment));
    const quarantine = await quarantineOf(this.#shard.env, spec, this.#circumstances(again));
    return { rollout, driver: await this.#driverOf(spec, environment, rollout, quarantine) };
  }

  async #newRollout(spec: RolloutSpec, environment: EnvironmentCode): Promise<Rollout> {
    const { rollout_id: id, task_key, row, example_id: index, from } = spec;
    const most_characters = mostCharactersOf(this.#shard.env, spec);
    if (from !== undefined) return { ...forkedRollout(id, from, this.#shard.now()), most_characters };
    const task = deepFreeze(spec.task) ?? (await makeTask(environment, { kind: "parsed", index, row })).task;
    const agents = spec.agent === undefined ? {} : { reported: NOTHING_REPORTED };
    return { ...newRollout({ id, task_key, ...task }, this.#shard.now()), ...agents, most_characters };
  }

  async #driverOf(
    spec: RolloutSpec,
    environment: EnvironmentCode,
    rollout: Rollout,
    quarantine: Quarantine | null,
  ): Promise<RolloutDriver> {
    const { ctx, env, now, calls, mayBegin } = this.#shard;
    const { limits } = spec;
    const { needs } = environment.description;
    const opened = await calls.inTurn(() => openMeans(env, spec, needs, now()));
    const player = await playerOf(environment, { ...spec, row: rollout.task });
    const deadline = this.#beginning(spec, rollout) + rolloutTimeMs(limits, player.timeoutMs);
    const clock = new StageClock({ times: stageTimes(limits), deadline, now });
    this.#clock = clock;
    const fetch = rolloutFetch(env, now, opened, this.#callsOf(clock));
    this.#ownsDatabase = needs.includes("sql");
    const sql = sqlOf(ctx, env, spec, this.#store, clock);
    const answers = new AnswerCache(env, spec, endpointOpener(env, spec.scope, spec, now), calls, now);
    this.#answers = answers;
    const reach = this.#noting(reachOf(env, spec, { open: answers.open, calls, now }));
    const seed = `${spec.seed}/${spec.example_id}/${spec.slot}/${spec.attempt}`;
    const opening = { rollout_id: spec.rollout_id, row: rollout, seed, secrets: opened.secrets };
    const ownTools = (of: Rollout) => toolsFor(environment, of);
    const agentTools = async ({ intent }: Rollout) => intent?.asked?.tools ?? [];
    const offer = { player, tools: spec.agent === undefined ? ownTools : agentTools };
    return new RolloutDriver({
      spec,
      store: this.#store,
      player: await environment.play(opening, {
        now,
        fetch: quarantine?.watchedFetch(fetch) ?? fetch,
        sql: quarantine?.watchedSql(sql) ?? sql,
        unrepeatable: (tool) => this.#store.beginUnrepeatable(tool),
        timer: clock.timer,
      }),
      callModel: modelCaller(spec, offer, { reach, answers }, calls, () => this.#memory.turn()),
      hold: spec.fleet === undefined ? callHolder(env, spec, now) : async (rollout) => rollout,
      callBudgeting: this.#callBudgetingOf(spec, offer),
      now,
      clock,
      deadline,
      mayBegin,
      fits: (grown) => this.#memory.grow(sizeInMemory(spec, grown)),
      onDisk: () => ctx.storage.sync(),
      quarantine,
      agent: spec.agent === undefined ? null : this.#desk,
    });
  }

  /** When its time begins, in epoch milliseconds. An agent's time begins with its first lease. */
  #beginning({ agent }: RolloutSpec, { started_at }: Rollout): number {
    return agent === undefined ? started_at : (this.#store.agent().leased_at ?? Number.POSITIVE_INFINITY);
  }

  #noting(reach: Reach): Reach {
    return async (call) => {
      const outcome = await reach(call);
      if (outcome.kind === "answered") this.#repliesWhole = outcome.whole === true;
      return outcome;
    };
  }

  #callBudgetingOf(spec: RolloutSpec, offer: Offer): CallBudgeting | null {
    if (spec.budget === undefined) return null;
    const { group, slot, attempt, budget } = spec;
    return {
      prices: budget.prices,
      sizeOf: callSizer(spec, offer),
      ask: (ask) => this.#shard.allow(spec, { group, slot, attempt, ...ask }),
    };
  }

  /**
   * How a hook's `can.fetch` is sent: earlier answers are on disk first, and the rollout uses only its part of the
   * connections. Waiting for other rollouts' connections does not count as the hook's time; waiting for its own calls
   * does.
   */
  #callsOf(clock: StageClock): Parameters<typeof rolloutFetch>[3] {
    return {
      signal: () => clock.callSignal,
      turn: (call) => {
        this.#store.keepAnswer();
        const signal = clock.callSignal;
        const leave = () => this.#shard.calls.inTurn(call, (wait) => clock.untimed(unlessAborted(wait, signal)));
        return this.#ownCalls.run(leave, (wait) => unlessAborted(wait, signal));
      },
    };
  }

  /** `resumed`: the next step may have killed a process before, since this process did not begin the rollout. */
  #circumstances(again: boolean): { readonly resumed: boolean; readonly again: boolean } {
    return { resumed: !this.#store.ranHere(), again };
  }

  /** The code that the run pinned is not in this deployment: the rollout ends free of charge; no other code is used. */
  #changed(spec: RolloutSpec, stored: Rollout | null): Rollout {
    const { id, version } = spec.environment;
    const error = serializeError(
      new EnvError(`this deployment does not have ${id}@${version} with the run's pinned code`),
    );
    return this.#ended(spec, stored, "environment_changed", error);
  }

  #ended(spec: RolloutSpec, stored: Rollout | null, failure: FailureClass, error: SerializedError): Rollout {
    const from = stored ?? this.#bareRollout(spec);
    return endedWithoutHooks(from, { failure, error }, this.#shard.now());
  }

  /** A rollout that has nothing but its row. */
  #bareRollout({ rollout_id, task_key, example_id, row }: RolloutSpec): Rollout {
    const bare = { example_id, task: row, prompt: [], answer: "", info: {} };
    return newRollout({ id: rollout_id, task_key, ...bare }, this.#shard.now());
  }

  /** Stores the trajectory in R2, then sends the report to the run. Both may be repeated. `bare`: without its tools. */
  async #report(spec: RolloutSpec, over: Rollout, bare = false): Promise<null> {
    const { env, calls } = this.#shard;
    const rollout = await this.#withEnds(spec, over);
    await this.#memory.turn(sizeInMemory(spec, rollout));
    const trajectory = storableTrajectory(bare ? trajectoryOf(rollout) : await finishedTrajectory(env, spec, rollout));
    const { digest, text } = trajectory;
    const inline = await calls.inTurn(() => storeTrajectory(env, spec, digest, text));
    const whole = this.#repliesWhole === undefined ? {} : { replies_whole: this.#repliesWhole };
    const report = { ...reportOf(spec, rollout, trajectory, inline), ...whole };
    const record = await this.#scored(spec, report);
    await this.#sendReport(spec, record === null ? report : { ...report, record });
    return null;
  }

  /** On a fleet, each call has the number of its end. These numbers are on disk: a repeat stores the same trajectory. */
  async #withEnds(spec: RolloutSpec, over: Rollout): Promise<Rollout> {
    if (spec.fleet === undefined) return over;
    const { env, calls, now } = this.#shard;
    const turns = noteEnds(over.turns, await fleets().ends(env, spec, over.turns, calls, now));
    if (turns !== over.turns) this.#store.save({ ...over, turns });
    return { ...over, turns: withEnds(turns) };
  }

  /** Scores the rollout here if its trajectory is in the report and its alarm is not a repeat after a death. */
  async #scored(spec: RolloutSpec, { failure, cancelled, trajectory }: RolloutReport): Promise<ScoreRecord | null> {
    const endedWell = failure === null && cancelled === null;
    if (spec.scored_in_place !== true || !endedWell || trajectory === null || this.#again) return null;
    try {
      return await scoreInPlace(this.#shard.env, spec, trajectory, this.#shard.calls, this.#store.begunHere);
    } catch (thrown) {
      // The rollout itself ended well: the scoring consumer will meet the same error and handle it.
      logError("rollout is left to be scored", idsOf(spec), thrown);
      return null;
    }
  }

  async #sendReport(spec: RolloutSpec, report: RolloutReport): Promise<void> {
    const spent = spendingOf(this.#store.callBudget(), spec.budget);
    const { known, refused } = await this.#shard.report(spec, { ...report, spent });
    if (refused !== undefined) throw new RefusedValueError(refused);
    if (!known) throw new RolloutError(`run ${spec.run_id} does not know this rollout`);
    this.#store.acknowledge();
    if (this.#ownsDatabase) dropDatabase(this.#shard.ctx, spec);
    if (spec.agent !== undefined) await this.#leaveAgent(spec);
  }

  /** A worker whose rollout has ended learns it at its next heartbeat; if this fails, when its lease expires. */
  async #leaveAgent(spec: RolloutSpec): Promise<void> {
    this.#desk.close(null);
    try {
      await agents().ended(this.#shard.env, spec);
    } catch (thrown) {
      logError("the end of a rollout was not sent to its agent", idsOf(spec), thrown);
    }
  }
}

/** A fleet reports for each call whether it waits. For an endpoint, an outage is checked before a call is retried. */
function reachOf(
  env: Env,
  spec: RolloutSpec,
  { open, calls, now }: Pick<Shard, "calls" | "now"> & { readonly open: OpenEndpoint },
): Reach {
  return spec.fleet === undefined ? endpointReach(open) : fleets().reach(env, spec, calls, now);
}
