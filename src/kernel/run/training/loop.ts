/**
 * Moves a run's training forward: cuts batches, writes them to R2, reports them to the trainer's object, and asks that
 * object if it has been silent for long. Every step is derived from rows, so what a kill interrupted is done again.
 *
 * Invariants. A batch is in R2 before it is reported. One pass runs at a time, and none throws. A run that waits for
 * its trainer sends one question a minute, then fewer.
 */

import { rolloutId } from "../../../core/ids.ts";
import { estimatorOf } from "../../../core/training/advantage.ts";
import { type BatchParts, type CreditLine, creditText, manifestOf } from "../../../core/training/batch.ts";
import { promptWeights } from "../../../core/training/loss-weights.ts";
import { PROCESS_SCHEDULER } from "../../kit/fair-scheduler.ts";
import { idsOf } from "../../kit/log.ts";
import { batchKeys, trainerObject } from "../../kit/names.ts";
import { macWithin, sha256Hex } from "../../kit/secrets.ts";
import { SingleFlight } from "../../kit/single-flight.ts";
import { Subrequests } from "../../kit/subrequests.ts";
import {
  type ReadyBatch,
  type TrainerSnapshot,
  type TrainingSpec,
  trainerSpecOf,
} from "../../messages/training-wire.ts";
import type { RolloutSlot, RunSpec } from "../../messages/wire.ts";
import { announce, trainsOn } from "../standing.ts";
import type { RunStore } from "../store.ts";
import type { Credit, Made, TrainBatch, TrainGroup } from "../training-state.ts";
import { canCut, cutBatches } from "./batches.ts";
import { type AcceptEval, TrainingEvals } from "./evals.ts";
import { takeNews } from "./news.ts";
import { type Ending, voidStale } from "./stale.ts";

type MadeObject = Made & { readonly object: NonNullable<Made["object"]> };

const LOOK_MS = 60_000;
const LONGEST_LOOK_MS = 10 * 60_000;
/** About 20 ms of the process: a batch is cut, written, reported, leased and acknowledged, however few rollouts it has. */
const STEPS_PER_BATCH = 400_000;

/** What the loop needs from the run. */
interface Above {
  readonly toScore: (scoringGroup: number) => void;
  readonly acceptEval: AcceptEval;
}

export class TrainingLoop {
  readonly #env: Env;
  readonly #store: RunStore;
  readonly #now: () => number;
  readonly #toScore: (scoringGroup: number) => void;
  readonly #evals: TrainingEvals;
  readonly #shipping: SingleFlight;
  readonly #evaluating: SingleFlight;
  /** A fresh instance, maybe after a restart, asks at once. */
  #lookAt = 0;
  #lookWait = LOOK_MS;

  constructor(env: Env, store: RunStore, now: () => number, { toScore, acceptEval }: Above) {
    this.#env = env;
    this.#store = store;
    this.#now = now;
    this.#toScore = toScore;
    this.#evals = new TrainingEvals(env, store, now, acceptEval);
    this.#shipping = new SingleFlight("training", now);
    this.#evaluating = new SingleFlight("evals of a training run", now);
  }

  /** The trainer's object reports its state. */
  changed(spec: RunSpec, snapshot: TrainerSnapshot): { acked_step: number } {
    const before = this.#store.head().training?.trainer.seq ?? 0;
    const scoringGroups = takeNews(this.#store, spec, snapshot, this.#ending(spec));
    for (const scoringGroup of scoringGroups) this.#toScore(scoringGroup);
    const after = this.#store.head().training?.trainer;
    if (after !== undefined && after.seq > before) this.#takeAnswer();
    return { acked_step: after?.acked_step ?? 0 };
  }

  /** Does what is due; null if nothing is due. Never throws. */
  advance(spec: RunSpec): Promise<void> | null {
    const { training } = spec;
    if (training === undefined) return null;
    const now = this.#now();
    const ships = (this.#shipsAt(spec) ?? Number.POSITIVE_INFINITY) <= now;
    const evaluates = (this.#evals.nextAt(spec) ?? Number.POSITIVE_INFINITY) <= now;
    const passes = [
      ships ? this.#shipping.run(idsOf(spec), () => this.#ship(spec, training)) : null,
      evaluates ? this.#evaluating.run(idsOf(spec), () => this.#evals.advance(spec)) : null,
    ].filter((pass) => pass !== null);
    return passes.length === 0 ? null : Promise.all(passes).then(() => undefined);
  }

  /** When the next step is due, in epoch milliseconds; null if there is none. */
  nextAt(spec: RunSpec): number | null {
    if (spec.training === undefined) return null;
    const ships = this.#shipping.after(this.#shipsAt(spec));
    const evaluates = this.#evaluating.after(this.#evals.nextAt(spec));
    if (ships === null || evaluates === null) return ships ?? evaluates;
    return Math.min(ships, evaluates);
  }

  async #ship(spec: RunSpec, training: TrainingSpec): Promise<void> {
    if (cutBatches(this.#store, spec, this.#now()) > 0) {
      const scoringGroups = voidStale(this.#store, spec, this.#ending(spec));
      for (const scoringGroup of scoringGroups) this.#toScore(scoringGroup);
    }
    const subrequests = new Subrequests();
    await this.#write(spec, training, subrequests);
    await this.#tell(spec, subrequests);
  }

  #shipsAt(spec: RunSpec): number | null {
    return this.#hasToShip(spec) ? this.#now() : this.#lookAfter(spec);
  }

  /** True if there is work that waits for nothing else. */
  #hasToShip(spec: RunSpec): boolean {
    const { training } = this.#store;
    return (
      canCut(spec, this.#store.head()) ||
      training.batchesIn("building").length > 0 ||
      training.batchesIn("built").length > 0 ||
      this.#unnotified() ||
      this.#toRevive() !== null
    );
  }

  async #write(spec: RunSpec, asked: TrainingSpec, subrequests: Subrequests): Promise<void> {
    const { training } = this.#store;
    for (const batch of training.batchesIn("building")) {
      const groups = training.shippedFor(batch.step);
      PROCESS_SCHEDULER.charge(spec.scope.orgId, STEPS_PER_BATCH);
      const written = await writeBatch(this.#env, spec, asked, batch, groups, subrequests);
      this.#store.transaction(() => {
        // A reset may have happened in the meantime.
        if (training.batch(batch.step, batch.generation)?.state !== "building") return;
        training.setBatch(batch, { ...written, state: "built" });
        const { step, generation, batch_id, rollouts, samples, tokens } = batch;
        const data = { step, generation, batch_id, rollouts, samples, tokens };
        announce(this.#store, "batch.ready", data, this.#now());
      });
    }
  }

  /** Reports changes to the trainer's object, or asks for its state. */
  async #tell(spec: RunSpec, subrequests: Subrequests): Promise<void> {
    const built = this.#store.training.batchesIn("built");
    const look = this.#lookAfter(spec) ?? Number.POSITIVE_INFINITY;
    const revive = this.#toRevive();
    const due = look <= this.#now();
    if (built.length === 0 && !this.#unnotified() && revive === null && !due) return;
    const trainer = trainerObject(this.#env, spec.scope, spec.run_id, spec.fleet);
    if (revive !== null) await subrequests.object(() => trainer.revive(revive));
    const standing = this.#standing();
    const acked_step = this.#store.head().training?.trainer.acked_step ?? 0;
    const offered = [...built, ...this.#store.training.batchesIn("ready")].map(readyBatch);
    const ready = () => trainer.ready(offered, { acked_step, ...standing });
    const snapshot = (await subrequests.object(ready)) ?? (await this.#create(spec, subrequests, ready));
    this.#store.transaction(() => {
      for (const { step, generation } of built) {
        const batch = this.#store.training.batch(step, generation);
        if (batch?.state === "built") this.#store.training.setBatch(batch, { state: "ready" });
      }
      const head = this.#store.head();
      if (head.training === null) return;
      this.#store.saveHead({ ...head, training: { ...head.training, told: standing } });
    });
    this.#lookAt = this.#now() + this.#lookWait;
    this.#lookWait = Math.min(LONGEST_LOOK_MS, this.#lookWait * 2);
    this.changed(spec, snapshot);
  }

  async #create(
    spec: RunSpec,
    subrequests: Subrequests,
    ready: () => Promise<TrainerSnapshot | null>,
  ): Promise<TrainerSnapshot> {
    const made = trainerSpecOf(spec);
    const trainer = trainerObject(this.#env, spec.scope, spec.run_id, spec.fleet);
    if (made !== null) await subrequests.object(() => trainer.create(made));
    const snapshot = await subrequests.object(ready);
    if (snapshot === null) throw new Error("the trainer's object was created and knows nothing");
    return snapshot;
  }

  /** When to ask a silent trainer's object; null if nothing is expected from it. */
  #lookAfter(spec: RunSpec): number | null {
    const head = this.#store.head();
    const over = head.stop !== null || head.settled_at !== null || !trainsOn(spec, head);
    return over || head.paused ? null : this.#lookAt;
  }

  #takeAnswer(): void {
    this.#lookWait = LOOK_MS;
    this.#lookAt = this.#now() + LOOK_MS;
  }

  #standing(): { paused: boolean; ended: boolean } {
    const { paused, stop, settled_at } = this.#store.head();
    return { paused, ended: stop !== null || settled_at !== null };
  }

  #unnotified(): boolean {
    const announced = this.#store.head().training?.told;
    const { paused, ended } = this.#standing();
    return announced !== undefined && (announced.paused !== paused || announced.ended !== ended);
  }

  /** The step of a dead batch whose run was resumed: it is offered once more. */
  #toRevive(): number | null {
    const { paused, stop, settled_at, training } = this.#store.head();
    const goes = !paused && stop === null && settled_at === null;
    return goes ? (training?.trainer.dead?.step ?? null) : null;
  }

  #ending(spec: RunSpec): Ending {
    const { run_id } = spec;
    return {
      idOf: (place: RolloutSlot) => rolloutId(run_id, place, macWithin(this.#env, run_id)),
      now: this.#now(),
    };
  }
}

function readyBatch(batch: TrainBatch): ReadyBatch {
  const { step, generation, batch_id, sha256, manifest_key, max_version } = batch;
  if (sha256 === null || manifest_key === null) {
    throw new Error(`batch ${batch_id} is not written`);
  }
  return { step, generation, batch_id, sha256, manifest_key, max_policy_version: max_version };
}

/**
 * Writes a batch to R2: the credits of its samples, then the manifest that names its objects by digest. Both are made
 * from rows only, so a repeat after a kill writes the same bytes; no token is read here. Returns the columns of the
 * batch's row.
 */
async function writeBatch(
  env: Env,
  spec: RunSpec,
  asked: TrainingSpec,
  { step, generation, batch_id }: TrainBatch,
  groups: readonly TrainGroup[],
  subrequests: Subrequests,
): Promise<{ sha256: string; manifest_key: string }> {
  const { manifest_key, credits_key } = batchKeys(spec.scope, spec.run_id, batch_id);
  const made = groups.map((group) => ({ made: madeOf(group), credits: creditsOf(group) }));
  const weights = asked.loss_aggregation === "prompt" ? promptWeights(made.map(trainedTokens)) : [];
  const credits = creditText(made.flatMap((group, at) => creditLines(group, weights[at])));
  const manifest = await manifestOf(
    {
      run_id: spec.run_id,
      step,
      generation,
      ...estimatorsOf(asked),
      environment: `${spec.environment.id}@${spec.environment.version}`,
      model: spec.model,
      sampling: asked.sampling ?? spec.sampling,
      groups: made.map(({ made: { object, samples } }) => ({ object, samples })),
      credits: { sha256: sha256Hex(credits), bytes: new TextEncoder().encode(credits).length },
    },
    digestOf,
  );
  await subrequests.fetch(() => env.STORE.put(credits_key, credits));
  await subrequests.fetch(() => env.STORE.put(manifest_key, JSON.stringify(manifest)));
  return { sha256: manifest.sha256, manifest_key };
}

function estimatorsOf({
  advantage,
  length_penalty,
  loss_aggregation,
  members,
}: TrainingSpec): Pick<BatchParts, "estimator" | "estimators"> {
  const estimator = estimatorOf(advantage, length_penalty, loss_aggregation);
  if (members === undefined) return { estimator };
  const named = members.map(({ name, advantage }) => [name, estimatorOf(advantage, length_penalty, loss_aggregation)]);
  return { estimator, estimators: Object.fromEntries(named) };
}

function madeOf({ group_index, made }: TrainGroup): MadeObject {
  const { object, samples } = JSON.parse(made ?? "{}") as Made;
  if (object === null || object === undefined) {
    throw new Error(`group ${group_index} was shipped and has no samples`);
  }
  return { object, samples };
}

function creditsOf({ credits }: TrainGroup): Readonly<Record<string, Credit>> {
  return JSON.parse(credits ?? "{}") as Record<string, Credit>;
}

interface CreditedSamples {
  readonly made: Made;
  readonly credits: Readonly<Record<string, Credit>>;
}

/** `weight`: of each of its trained tokens in the loss; undefined: 1. */
function creditLines({ made, credits }: CreditedSamples, weight: number | undefined): CreditLine[] {
  const weighed = weight === undefined ? {} : { weight };
  return made.samples.flatMap(({ sample_id, rollout_id }): CreditLine[] => {
    const credit = credits[rollout_id];
    return credit === undefined ? [] : [{ sample_id, ...credit, ...weighed }];
  });
}

function trainedTokens({ made, credits }: CreditedSamples): number {
  return made.samples.reduce((sum, { rollout_id, trainable_tokens }) => {
    return rollout_id in credits ? sum + trainable_tokens : sum;
  }, 0);
}

async function digestOf(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", bytes);
  return Buffer.from(digest).toString("hex");
}
