/**
 * One rollout, one object.
 *
 * Invariants. The constructor writes nothing; the first `start` makes the schema, and any other call on an object
 * without a spec answers `unknown` and writes nothing. The turn loop lives in `alarm()`, which the runtime repeats
 * after a crash, so nothing here arms a far alarm before the loop ends, and the handler never throws. The final report
 * is repeated until the run acknowledges it; then the object only waits to be freed. What can never be stored or
 * reported for what it is ends the rollout instead, with a report that can.
 */

import { DurableObject } from "cloudflare:workers";
import {
  type CancelReason,
  EnvError,
  type FailureClass,
  RolloutError,
  type SerializedError,
  serializeError,
} from "../../contract/errors.ts";
import type { Trajectory } from "../../contract/trajectory.ts";
import type { AnyEnvironment, PlayedEnvironment } from "../../core/environments/any-environment.ts";
import { forkedRollout } from "../../core/rollout/fork.ts";
import { openHarness } from "../../core/rollout/harness.ts";
import { newRollout, type Rollout, trajectoryOf } from "../../core/rollout/rollout.ts";
import { buildTask } from "../../core/rollout/task.ts";
import type { PendingCall, TurnOutcome, Unasked } from "../contract/endpoint-wire.ts";
import type { RolloutRpc, Serves } from "../contract/rpc.ts";
import {
  type Delivery,
  type RolloutReport,
  type RolloutSpec,
  type RolloutStanding,
  START_MESSAGE_LIFE_MS,
} from "../contract/wire.ts";
import { callHolder, endpointOpener } from "../endpoint/call.ts";
import { rolloutCapabilities } from "../environment/capabilities.ts";
import { pinnedEnvironment } from "../environment/environments.ts";
import { retiresAtOnce } from "../environment/live-objects.ts";
import { StageClock, stageTimes } from "../environment/stage-clock.ts";
import type { Suspect } from "../environment/suspects.ts";
import { isAtRest, untilTheNextBoot } from "../kit/at-rest.ts";
import { logError } from "../kit/log.ts";
import { runObject } from "../kit/names.ts";
import { openSecrets } from "../kit/secret-values.ts";
import { RefusedValueError } from "../kit/storage-faults.ts";
import { Subrequests } from "../kit/subrequests.ts";
import {
  bareReport,
  finishedTrajectory,
  NOTHING_LEFT,
  reportOf,
  storableTrajectory,
} from "../trajectory/rollout-report.ts";
import { storeTrajectory } from "../trajectory/store.ts";
import { afterCall, waitingFor } from "./call-outcome.ts";
import { ALARM_BUDGET_MS, endedWithoutHooks, RolloutDriver } from "./driver.ts";
import { type FailedTries, faultOf, NO_TRIES, platformWaitMs, type RolloutFault, withFailed } from "./fault.ts";
import { awaitInAlarm, awaitInQueue, awaitsInQueue, type ModelDriver, turnCall } from "./model-driver.ts";
import { rehearse, rolloutSuspect } from "./rehearsal.ts";
import { sqlOf } from "./sql-object.ts";
import { RolloutStore } from "./store.ts";

/** After the last use, where objects are retired at once: long enough for a reply to leave. */
const RETIRE_AFTER_MS = 30;

export class RolloutObject extends DurableObject<Env> implements Serves<RolloutRpc> {
  /** The clock, replaced by tests. */
  now: () => number = () => Date.now();
  /** How long one alarm goes on; tests shrink it. */
  alarmBudgetMs = ALARM_BUDGET_MS;
  readonly #store: RolloutStore;
  #driver: RolloutDriver | null = null;
  #running = false;
  /** Requests about a call that is away, while they are served. */
  #attending = 0;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#store = new RolloutStore(ctx.storage.sql);
  }

  async start(spec: RolloutSpec, sentAt: number): Promise<RolloutStanding> {
    if (this.#store.spec() !== null) return await this.#standing();
    if (this.now() - sentAt > START_MESSAGE_LIFE_MS) return { state: "expired" };
    this.#store.begin(spec);
    await this.ctx.storage.setAlarm(this.now());
    return { state: "running", next_event_at: this.now() };
  }

  async ask(): Promise<RolloutStanding> {
    if (this.#store.spec() === null) return { state: "unknown" };
    const standing = await this.#standing();
    this.#retireSoon();
    return standing;
  }

  async cancel(reason: CancelReason): Promise<RolloutStanding> {
    if (this.#store.spec() === null) return { state: "unknown" };
    if (!this.#store.acknowledged()) {
      this.#store.requestCancel(reason);
      this.#driver?.cancel(reason);
      // One that sleeps until its next try must hear of it now.
      if (!this.#running) await this.ctx.storage.setAlarm(this.now());
    }
    return await this.#standing();
  }

  async pendingCall(turn: number, call: number, by: Delivery): Promise<PendingCall | null> {
    const spec = this.#store.spec();
    if (spec === null || this.#store.cancelRequest() !== null) return null;
    return await this.#attend(async () => {
      const rollout = waitingFor(this.#store.load(), turn, call);
      const wait_ms = (rollout?.intent?.away_until ?? 0) - this.now();
      if (rollout === null || wait_ms <= 0) return null;
      const environment = await pinnedEnvironment(spec.environment, spec.environment_args);
      // Where its code is gone the rollout ends with that when the call's time has passed.
      if (environment === null || !this.#store.takeCall(turn, call, by)) return null;
      const asked = turnCall(spec, rollout, environment);
      if ("kind" in asked) {
        await this.#noteOutcome(spec, rollout, asked);
        return null;
      }
      return { ...asked, endpoint_id: spec.endpoint_id, wait_ms };
    });
  }

  async modelAnswered(turn: number, call: number, outcome: TurnOutcome): Promise<void> {
    const spec = this.#store.spec();
    if (spec === null) return;
    await this.#attend(async () => {
      const rollout = waitingFor(this.#store.load(), turn, call);
      if (rollout === null) return;
      await this.#noteOutcome(spec, rollout, outcome);
      // On disk before it is acknowledged: whoever holds the answer holds the only one.
      await this.ctx.storage.sync();
    });
  }

  async #noteOutcome(spec: RolloutSpec, rollout: Rollout, outcome: TurnOutcome | Unasked) {
    this.#store.saveOutcome(afterCall(rollout, outcome, { spec, at: this.now() }));
    await this.ctx.storage.setAlarm(this.now());
  }

  read(): Rollout | null {
    const spec = this.#store.spec();
    this.#retireSoon();
    return spec === null ? null : this.#store.load();
  }

  /** The trajectory stays in R2. */
  async free(): Promise<boolean> {
    if (this.#store.spec() === null) return true;
    if (!this.#store.acknowledged()) return false;
    await this.ctx.storage.deleteAll();
    this.#store.forget();
    this.#retireSoon();
    return true;
  }

  override async alarm(info?: AlarmInvocationInfo): Promise<void> {
    if (isAtRest(this.env)) await untilTheNextBoot();
    const spec = this.#store.spec();
    if (spec === null || this.#store.acknowledged() || this.#running) return;
    this.#running = true;
    try {
      const wakeAt = await this.#run(spec, info?.isRetry ?? false);
      this.#noteTries(NO_TRIES);
      if (wakeAt !== null) await this.#wakeBy(wakeAt);
    } catch (thrown) {
      await this.#failedWith(spec, thrown);
    } finally {
      this.#running = false;
      this.#driver = null;
      this.#retireSoon();
    }
  }

  /** What passes is waited for; what does not ends the rollout. */
  async #failedWith(spec: RolloutSpec, thrown: unknown): Promise<void> {
    const tries = withFailed(this.#store.failedTries(), thrown);
    try {
      if (await this.#endedBy(spec, faultOf(thrown, tries))) {
        logError("rollout ended", spec.rollout_id, thrown);
        return;
      }
    } catch (again) {
      logError("rollout cannot be ended", spec.rollout_id, again);
    }
    // Thrown alarms are repeated six times and then forgotten: keep our own count instead.
    logError("rollout waits for the platform", spec.rollout_id, thrown);
    this.#noteTries(tries);
    await this.#wakeBy(this.now() + platformWaitMs(tries.failed));
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
      await this.#tell(spec, bareReport(report, fault.why), new Subrequests());
    }
    return true;
  }

  #noteTries(tries: FailedTries): void {
    try {
      this.#store.noteTries(tries);
    } catch (thrown) {
      logError("tries are counted in memory", this.ctx.id.toString(), thrown);
    }
  }

  /** What was heard while the alarm ran may have asked for an earlier one. */
  async #wakeBy(at: number): Promise<void> {
    const asked = await this.ctx.storage.getAlarm();
    await this.ctx.storage.setAlarm(Math.min(at, asked ?? at));
  }

  /** `again`: this alarm was begun before, and its process ended. */
  async #run(spec: RolloutSpec, again: boolean): Promise<number | null> {
    const stored = this.#store.load();
    const bare = () => stored ?? this.#bareRollout(spec);
    const ended = await rehearse(this.env, spec, this.#isSuspect(again), stored, bare, this.now);
    if (ended !== null) return await this.#report(spec, ended, trajectoryOf(ended));
    if (stored?.phase === "done") return await this.#report(spec, stored);
    const begun = await this.#begin(spec, stored, again);
    if (begun.rollout.phase === "done" || begun.driver === null) {
      return await this.#report(spec, begun.rollout);
    }
    this.#driver = begun.driver;
    // As it is stored now: the answer to a call that was away may have come since.
    const drive = await begun.driver.drive(this.#store.load() ?? begun.rollout);
    return "wakeAt" in drive ? drive.wakeAt : await this.#report(spec, drive.done);
  }

  async #begin(
    spec: RolloutSpec,
    stored: Rollout | null,
    again: boolean,
  ): Promise<{ rollout: Rollout; driver: RolloutDriver | null }> {
    const environment = await pinnedEnvironment(spec.environment, spec.environment_args);
    if (environment === null) return { rollout: this.#changed(spec, stored), driver: null };
    const { rollout_id: id, task_key } = spec;
    const rollout =
      stored ??
      (spec.from && forkedRollout(id, spec.from, this.now())) ??
      newRollout({ id, task_key, ...buildTask(environment, spec.row, spec.example_id) }, this.now());
    const suspect = await rolloutSuspect(this.env, spec, this.#isSuspect(again));
    return { rollout, driver: await this.#driverOf(spec, environment, rollout, suspect) };
  }

  async #driverOf(
    spec: RolloutSpec,
    environment: AnyEnvironment,
    rollout: Rollout,
    suspect: Suspect | null,
  ): Promise<RolloutDriver> {
    const { env, now } = this;
    const { scope, limits } = spec;
    const secrets = await openSecrets(env, scope, environment.needs, now());
    const deadline = rollout.started_at + timeLimitMs(spec, environment.route(rollout).environment);
    const clock = new StageClock({ times: stageTimes(limits), deadline, now });
    const capabilities = rolloutCapabilities(env, now, secrets);
    const sql = sqlOf(this.ctx, this.#store);
    const harness = openHarness(environment, rollout, {
      rolloutId: spec.rollout_id,
      signal: clock.signal,
      limit: clock.limit,
      unrepeatable: (tool) => this.#store.beginUnrepeatable(tool),
      capabilities: suspect?.watchedCapabilities(capabilities) ?? capabilities,
      sql: suspect?.watchedSql(sql) ?? sql,
      secrets: [...secrets.values()],
      seed: `${spec.seed}/${spec.example_id}/${spec.slot}/${spec.attempt}`,
    });
    return new RolloutDriver({
      spec,
      store: this.#store,
      harness,
      model: this.#modelOf(spec, environment),
      hold: callHolder(env, spec, now),
      now,
      clock,
      deadline,
      alarmBudgetMs: this.alarmBudgetMs,
      onDisk: () => this.ctx.storage.sync(),
      suspect,
    });
  }

  /** What comes next may have ended a process before: this one did not come to it. `again`: nor did this alarm. */
  #isSuspect(again: boolean): { readonly resumed: boolean; readonly again: boolean } {
    return { resumed: !this.#store.ranHere(), again };
  }

  #modelOf(spec: RolloutSpec, environment: AnyEnvironment): ModelDriver {
    const { env, now } = this;
    if (awaitsInQueue(env)) return awaitInQueue(spec, env.MODEL_CALLS, now);
    const open = endpointOpener(env, spec.scope, spec.endpoint_id, now);
    return awaitInAlarm(spec, environment, open);
  }

  /** The code the run pinned is gone from this deployment: free of charge, and never run with other code. */
  #changed(spec: RolloutSpec, stored: Rollout | null): Rollout {
    const { id, version } = spec.environment;
    const error = serializeError(
      new EnvError(`${id}@${version} is not in this deployment with the code the run pinned`),
    );
    return this.#ended(spec, stored, "environment_changed", error);
  }

  #ended(spec: RolloutSpec, stored: Rollout | null, failure: FailureClass, error: SerializedError): Rollout {
    const from = stored ?? this.#bareRollout(spec);
    return endedWithoutHooks(from, { failure, error }, this.now());
  }

  /** One that has nothing but its row. */
  #bareRollout({ rollout_id, task_key, example_id, row }: RolloutSpec): Rollout {
    const bare = { example_id, task: row, prompt: [], answer: "", info: {} };
    return newRollout({ id: rollout_id, task_key, ...bare }, this.now());
  }

  /** The trajectory to R2, then the report to the run; both may be repeated. */
  async #report(spec: RolloutSpec, rollout: Rollout, left?: Trajectory): Promise<number | null> {
    const subrequests = new Subrequests();
    const trajectory = storableTrajectory(left ?? (await finishedTrajectory(spec, rollout)));
    const { digest, text } = trajectory;
    const inline = await subrequests.fetch(() => storeTrajectory(this.env, spec, digest, text));
    await this.#tell(spec, reportOf(spec, rollout, trajectory, inline), subrequests);
    return null;
  }

  async #tell(spec: RolloutSpec, report: RolloutReport, subrequests: Subrequests): Promise<void> {
    const run = runObject(this.env, spec.scope, spec.run_id);
    const { known, refused } = await subrequests.object(() => run.answered(report));
    if (refused !== undefined) throw new RefusedValueError(refused);
    if (!known) throw new RolloutError(`run ${spec.run_id} does not know this rollout`);
    this.#store.acknowledge();
  }

  async #standing(): Promise<RolloutStanding> {
    if (this.#store.acknowledged()) {
      this.#retireSoon();
      return { state: "answered" };
    }
    const alarm = await this.ctx.storage.getAlarm();
    // While alarm() runs there is no pending alarm; a rollout that has neither was lost and is woken.
    if (alarm === null && !this.#running) await this.ctx.storage.setAlarm(this.now());
    return { state: "running", next_event_at: this.#driver?.nextEventAt ?? alarm ?? this.now() };
  }

  async #attend<T>(work: () => Promise<T>): Promise<T> {
    this.#attending += 1;
    try {
      return await work();
    } finally {
      this.#attending -= 1;
      this.#retireSoon();
    }
  }

  /** Local only: takes an idle object out of memory, which frees its file descriptors. Storage and alarm stay. */
  #retireSoon(): void {
    if (!retiresAtOnce(this.env)) return;
    setTimeout(() => {
      if (!this.#running && this.#attending === 0) this.ctx.abort("retired");
    }, RETIRE_AFTER_MS);
  }
}

/** Milliseconds the rollout may take; infinity where nobody says. */
function timeLimitMs({ limits }: RolloutSpec, { timeoutMs }: PlayedEnvironment): number {
  const ofRun = (limits.rollout_timeout_s ?? Number.POSITIVE_INFINITY) * 1000;
  return Math.min(ofRun, timeoutMs ?? Number.POSITIVE_INFINITY);
}
