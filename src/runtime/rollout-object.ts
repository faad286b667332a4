/**
 * One rollout, one object.
 *
 * Invariants. The constructor writes nothing; the first `start` makes the schema, and any other call on an object
 * without a spec answers `unknown` and writes nothing. The turn loop lives in `alarm()`, which the runtime repeats
 * after a crash, so nothing here arms a far alarm before the loop ends, and the handler never throws. The final report
 * is repeated until the run acknowledges it; then the object only waits to be freed.
 */

import { DurableObject } from "cloudflare:workers";
import { type CancelReason, EnvError, RolloutError, serializeError } from "../core/errors.ts";
import { Harness, toolDefinitions } from "../core/harness.ts";
import { advance, newRollout, type Rollout, trajectoryOf } from "../core/rollout.ts";
import { buildTask } from "../core/task.ts";
import { rolloutCapabilities } from "./capabilities.ts";
import { openEndpoint } from "./endpoints.ts";
import { pinnedEnvironment } from "./environments.ts";
import { retiresAtOnce } from "./live-objects.ts";
import { logError } from "./log.ts";
import { runObject } from "./names.ts";
import { RolloutDriver } from "./rollout-driver.ts";
import { reportOf, storableTrajectory } from "./rollout-report.ts";
import { RolloutStore } from "./rollout-store.ts";
import type { RolloutRpc, Serves } from "./rpc.ts";
import { openSecrets } from "./secret-values.ts";
import { Subrequests } from "./subrequests.ts";
import { storeTrajectory } from "./trajectory-store.ts";
import { type RolloutSpec, type RolloutStanding, START_MESSAGE_LIFE_MS } from "./wire.ts";

/** Between tries of what the platform itself owes (store, report): it is not the rollout's failure. */
const PLATFORM_RETRY_MS = 500;
const LONGEST_PLATFORM_RETRY_MS = 30_000;
/** After the last use, where objects are retired at once: long enough for a reply to leave. */
const RETIRE_AFTER_MS = 30;

export class RolloutObject extends DurableObject<Env> implements Serves<RolloutRpc> {
  /** The clock, replaced by tests. */
  now: () => number = () => Date.now();
  readonly #store: RolloutStore;
  #driver: RolloutDriver | null = null;
  #running = false;
  #platformFailures = 0;

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
    return this.#store.spec() === null ? { state: "unknown" } : await this.#standing();
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

  override async alarm(): Promise<void> {
    const spec = this.#store.spec();
    if (spec === null || this.#store.acknowledged() || this.#running) return;
    this.#running = true;
    try {
      const wakeAt = await this.#run(spec);
      this.#platformFailures = 0;
      if (wakeAt !== null) await this.ctx.storage.setAlarm(wakeAt);
    } catch (thrown) {
      // Thrown alarms are repeated six times and then forgotten: keep our own count instead.
      logError("rollout waits for the platform", spec.rollout_id, thrown);
      this.#platformFailures += 1;
      await this.ctx.storage.setAlarm(this.now() + platformWaitMs(this.#platformFailures));
    } finally {
      this.#running = false;
      this.#driver = null;
      this.#retireSoon();
    }
  }

  async #run(spec: RolloutSpec): Promise<number | null> {
    const stored = this.#store.load();
    if (stored?.phase === "done") return await this.#report(spec, stored);
    const begun = await this.#begin(spec, stored);
    if (begun.rollout.phase === "done" || begun.driver === null) {
      return await this.#report(spec, begun.rollout);
    }
    this.#driver = begun.driver;
    const drive = await begun.driver.drive(begun.rollout);
    return "wakeAt" in drive ? drive.wakeAt : await this.#report(spec, drive.done);
  }

  async #begin(
    spec: RolloutSpec,
    stored: Rollout | null,
  ): Promise<{ rollout: Rollout; driver: RolloutDriver | null }> {
    const environment = await pinnedEnvironment(spec.environment, spec.environment_args);
    if (environment === null) return { rollout: this.#changed(spec, stored), driver: null };
    const { rollout_id: id, task_key } = spec;
    const rollout =
      stored ??
      newRollout(
        { id, task_key, ...buildTask(environment, spec.row, spec.example_id) },
        this.now(),
      );
    const secrets = await openSecrets(this.env, spec.scope, environment.needs, this.now());
    const signal = { aborted: false };
    const harness = new Harness(environment, {
      rolloutId: id,
      signal,
      capabilities: rolloutCapabilities(this.now, secrets),
      secrets: [...secrets.values()],
      seed: `${spec.seed}/${spec.example_id}/${spec.slot}/${spec.attempt}`,
    });
    const driver = new RolloutDriver({
      spec,
      store: this.#store,
      environment,
      harness,
      tools: toolDefinitions(environment),
      endpoint: () => openEndpoint(this.env, spec.scope, spec.endpoint_id, this.now()),
      now: this.now,
      signal,
    });
    return { rollout, driver };
  }

  /** The code the run pinned is gone from this deployment: free of charge, and never run with other code. */
  #changed(spec: RolloutSpec, stored: Rollout | null): Rollout {
    const { id, version } = spec.environment;
    const error = serializeError(
      new EnvError(`${id}@${version} is not in this deployment with the code the run pinned`),
    );
    const { rollout_id, task_key, example_id, row } = spec;
    const bare = { example_id, task: row, prompt: [], answer: "", info: {} };
    const from = stored ?? newRollout({ id: rollout_id, task_key, ...bare }, this.now());
    const failed = advance(from, { type: "failed", failure: "environment_changed", error });
    const { state } = failed;
    return advance(failed, {
      type: "closed",
      state,
      error: null,
      cleanup_errors: [],
      at: this.now(),
    });
  }

  /** The trajectory to R2, then the report to the run; both may be repeated. */
  async #report(spec: RolloutSpec, rollout: Rollout): Promise<number | null> {
    const subrequests = new Subrequests();
    const trajectory = storableTrajectory(trajectoryOf(rollout));
    const { digest, text } = trajectory;
    const inline = await subrequests.fetch(() => storeTrajectory(this.env, spec, digest, text));
    const report = reportOf(spec, rollout, trajectory, inline);
    const run = runObject(this.env, spec.scope, spec.run_id);
    const { known } = await subrequests.object(() => run.answered(report));
    if (!known) throw new RolloutError(`run ${spec.run_id} does not know this rollout`);
    this.#store.acknowledge();
    return null;
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

  /** Local only: takes an idle object out of memory, which frees its file descriptors. Storage and alarm stay. */
  #retireSoon(): void {
    if (!retiresAtOnce(this.env)) return;
    setTimeout(() => {
      if (!this.#running) this.ctx.abort("retired");
    }, RETIRE_AFTER_MS);
  }
}

function platformWaitMs(failures: number): number {
  return Math.min(LONGEST_PLATFORM_RETRY_MS, PLATFORM_RETRY_MS * 2 ** Math.min(failures, 10));
}
