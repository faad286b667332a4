/**
 * Plays one training plan: the real platform under faults, and a trainer that crashes, comes back with its disk, and
 * goes back to an earlier version. It only records; check.ts judges.
 */
import { setTimeout as pause } from "node:timers/promises";
import type { RunAudit } from "../../../src/contract/audit.ts";
import type { ResultRow, RunView } from "../../../src/contract/run.ts";
import type { BatchManifest, Leased } from "../../../src/contract/trainer-wire.ts";
import type { TrainingRequestInput } from "../../../src/contract/training-request.ts";
import { RollcallClient } from "../../../src/sdk/client.ts";
import { ApiRequestError } from "../../../src/sdk/request-error.ts";
import { type ScriptedModel, startScriptedModel } from "../../fakes/scripted-model.ts";
import { type Checkpoint, ScriptedTrainer, TrainerDied, TrainerRefused } from "../../fakes/scripted-trainer.ts";
import { deathOf, rebooted, type Served } from "../../local/served-platform.ts";
import { Boot } from "../boot.ts";
import { type Desk, openDesk } from "../desk.ts";
import { CALM, KNOWN_FOR_MS } from "../knobs.ts";
import type { Victim } from "../plan.ts";
import { sayingOf } from "./model.ts";
import type { TrainingPlan } from "./plan.ts";

/** For a platform that boots on a busy machine while a store is unavailable. */
const PATIENCE_MS = 60_000;
const ASK_EVERY_MS = 100;
/** A lost message costs its timeout, at most half a minute, and several may be lost in a row. */
const WRITTEN_WITHIN_MS = 60_000;

/** A batch as the trainer got it. */
export interface Taken {
  readonly manifest: BatchManifest;
  /**
   * The number of batches that the run was ahead of the published weights at that moment; null if a store was
   * unavailable.
   */
  readonly lead: number | null;
  readonly credits: readonly Readonly<Record<string, unknown>>[];
}

export interface TrainingAccount {
  readonly plan: TrainingPlan;
  readonly run: RunView;
  readonly results: readonly ResultRow[];
  readonly audit: RunAudit;
  /** Every lease of a batch, in order. */
  readonly taken: readonly Taken[];
  /** Batches in the weights at the end. */
  readonly lineage: readonly string[];
  readonly faults: Readonly<Record<"crashes" | "kills" | "outages" | "rewinds" | "dropped", number>>;
  /** From the platform's report that it answers again to the trainer's next reply, at each kill. */
  readonly recovery_ms: readonly number[];
}

export async function playTraining(
  plan: TrainingPlan,
  { port, endsWithinMs }: { readonly port: number; readonly endsWithinMs: number },
): Promise<TrainingAccount> {
  const model = await startScriptedModel({
    reply: (request) => sayingOf(plan.seed, request),
    latencyMs: plan.latency_ms,
  });
  const desk = await openDesk({ ...CALM, ...plan.queues });
  const boot = new Boot(port, `${desk.url}/knobs`);
  try {
    return await new Scene(plan, boot, model, desk).play(Date.now() + endsWithinMs);
  } catch (error) {
    process.stderr.write(`seed ${plan.seed}: what the platform said last\n${boot.lastWords()}\n`);
    throw error;
  } finally {
    await boot.end();
    await Promise.all([model.stop(), desk.stop()]);
  }
}

class Scene {
  readonly #plan: TrainingPlan;
  readonly #boot: Boot;
  readonly #model: ScriptedModel;
  readonly #desk: Desk;
  readonly #taken: Taken[] = [];
  readonly #recovery: number[] = [];
  readonly #disk: Checkpoint = { version: 0, last: null, lineage: [] };
  /** The disk as it was at each version. */
  readonly #backups = new Map<number, Checkpoint>();
  readonly #crashes: TrainingPlan["crashes"][number][];
  readonly #kills: TrainingPlan["kills"][number][];
  readonly #outages: TrainingPlan["outages"][number][];
  readonly #failing: Promise<void>[] = [];
  #rewinds = 0;
  #backAt = 0;

  constructor(plan: TrainingPlan, boot: Boot, model: ScriptedModel, desk: Desk) {
    this.#plan = plan;
    this.#boot = boot;
    this.#model = model;
    this.#desk = desk;
    this.#crashes = [...plan.crashes];
    this.#kills = [...plan.kills];
    this.#outages = [...plan.outages];
  }

  async play(until: number): Promise<TrainingAccount> {
    const { crashes, kills, outages } = this.#plan;
    await this.#boot.start();
    const { id, trainer } = await this.#client().runs.create(requestOf(this.#plan, this.#model.url));
    if (!trainer) throw new Error("the run came without its trainer's token");
    while (!(await this.#trainerLives(id, trainer.token))) {
      if (Date.now() > until) throw new Error(`the run is not trained in time: ${id}`);
    }
    // Later requests must not meet a failing store, nor the Worker's cached settings.
    await Promise.all(this.#failing);
    await pause(2 * KNOWN_FOR_MS);
    const run = await this.#ended(id, until);
    const results: ResultRow[] = [];
    for await (const row of this.#client().runs.results(id)) results.push(row);
    return {
      ...{ plan: this.#plan, run, results, taken: this.#taken, lineage: this.#disk.lineage },
      audit: await this.#audited(id),
      recovery_ms: this.#recovery,
      faults: {
        crashes: crashes.length - this.#crashes.length,
        kills: kills.length - this.#kills.length,
        outages: outages.length - this.#outages.length,
        rewinds: this.#rewinds,
        dropped: this.#boot.faults("dropped"),
      },
    };
  }

  /** One life of the trainer. True: it trained the run to its end. */
  async #trainerLives(run: string, token: string): Promise<boolean> {
    const { rewinds_at, publishes_with_ack: publishesWithAck } = this.#plan;
    const diesAt = this.#crashes.shift();
    const { url } = this.#served();
    const trainer: ScriptedTrainer = new ScriptedTrainer({
      ...{ url, run, token, checkpoint: this.#disk, patienceMs: PATIENCE_MS, publishesWithAck },
      ...(diesAt && { diesAt }),
      train: async (leased) => await this.#train(trainer, leased),
    });
    const back = rewinds_at !== null && this.#rewinds === 0 && this.#disk.version >= rewinds_at - 1;
    if (back) this.#goBack();
    const mark = this.#disk.lineage.length;
    try {
      await trainer.work(back ? { reset_to: this.#disk.version } : {});
      return true;
    } catch (error) {
      if (diesAt && !(error instanceof TrainerDied)) this.#crashes.unshift(diesAt);
      if (error instanceof TrainerDied || wasLost(error)) return false;
      throw new Error(`after ${mark} batches: ${error}`, { cause: error });
    }
  }

  /** Executes the incidents during the training of the batch. */
  async #train(trainer: ScriptedTrainer, leased: Leased): Promise<void> {
    const { step } = leased.manifest;
    if (this.#backAt > 0) this.#recovery.push(Math.max(0, Date.now() - this.#backAt));
    this.#backAt = 0;
    const { credits } = await trainer.read(leased);
    const lead = await this.#lead(leased.manifest.run_id);
    this.#taken.push({ manifest: leased.manifest, lead, credits });
    this.#backups.set(step - 1, structuredClone(this.#disk));
    for (const outage of take(this.#outages, step)) this.#failing.push(this.#fail(outage));
    for (const { victim, wait_ms } of take(this.#kills, step)) {
      await pause(wait_ms);
      await this.#kill(victim);
    }
    await trainer.heartbeat(leased);
    const { rewinds_at } = this.#plan;
    if (step === rewinds_at && this.#rewinds === 0) throw new TrainerDied("to go back");
  }

  async #lead(run: string): Promise<number | null> {
    try {
      return (await this.#client().runs.get(run)).training?.lead ?? null;
    } catch (error) {
      if (error instanceof ApiRequestError) return null;
      throw error;
    }
  }

  async #fail({ store, for_ms }: TrainingPlan["outages"][number]): Promise<void> {
    const failing = [store];
    this.#desk.turn({ failing });
    await pause(for_ms);
    if (this.#desk.knobs().failing === failing) this.#desk.turn({ failing: [] });
  }

  async #kill(victim: Victim): Promise<void> {
    const served = this.#served();
    const dead = deathOf(served.workerd);
    const pid = { node: served.node.pid, workerd: served.workerd.pid, group: -served.group };
    process.kill(pid[victim], "SIGKILL");
    this.#boot.served = await (victim === "workerd" ? rebooted(this.#boot.directory, served) : this.#boot.start());
    await dead;
    this.#backAt = this.#boot.served.readyAt;
  }

  /** Restores its disk of two versions ago, or of the beginning. */
  #goBack(): void {
    const version = Math.max(0, this.#disk.version - 2);
    const { last, lineage } = this.#backups.get(version) ?? { last: null, lineage: [] };
    Object.assign(this.#disk, { version, last, lineage: [...lineage] });
    this.#rewinds += 1;
  }

  #served(): Served {
    const { served } = this.#boot;
    if (served === null) throw new Error("the platform was never started");
    return served;
  }

  #client(): RollcallClient {
    const { url, key } = this.#served();
    return new RollcallClient({ baseUrl: url, apiKey: key });
  }

  async #ended(id: string, until: number): Promise<RunView> {
    for (;;) {
      const run = await this.#client().runs.get(id);
      if (run.finished_at !== null || Date.now() > until) return run;
      await pause(ASK_EVERY_MS);
    }
  }

  /** D1 follows the run: the audit is repeated until D1 has caught up, or the time is over. */
  async #audited(id: string): Promise<RunAudit> {
    const until = Date.now() + WRITTEN_WITHIN_MS;
    for (;;) {
      const audit = await this.#client().runs.audit(id);
      if (audit.sources.d1.current || Date.now() > until) return audit;
      await pause(ASK_EVERY_MS);
    }
  }
}

/** The events of the step, removed from the list. */
function take<Event extends { readonly step: number }>(events: Event[], step: number): Event[] {
  const now = events.filter((event) => event.step <= step);
  events.splice(0, events.length, ...events.filter((event) => event.step > step));
  return now;
}

/** Its lease ended while the platform was down: the trainer starts again with its disk. */
function wasLost(error: unknown): boolean {
  return error instanceof TrainerRefused && ["lease_lost", "step_mismatch"].includes(error.code);
}

function requestOf(plan: TrainingPlan, url: string): TrainingRequestInput {
  const { environment, max_steps, group_size, batch_rollouts, zero_variance, seed } = plan;
  const { lead, max_off_policy_steps } = plan;
  return {
    ...{ kind: "training", environment, seed, max_steps, group_size, lead, max_off_policy_steps },
    environment_args: environment === "guess-number" ? { max: 15, max_turns: 4 } : {},
    model: "fault-model",
    endpoint: { base_url: url },
    batch_size: { rollouts: batch_rollouts },
    min_group_size: 1,
    filters: { zero_variance },
    trainer: { delivery: "pull", encoding: "jsonl", lease_s: 60, max_attempts: 50 },
    limits: { call_timeout_s: 5, max_retries: 6 },
  };
}
