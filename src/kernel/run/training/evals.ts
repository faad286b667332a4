/**
 * Evals of a training run's own weights, at its start and every few steps, each with an interval of its own. Each is a
 * run of its own, on the same endpoint and model. It is followed until it ends; its mean is entered in the series at the
 * step at which it began.
 *
 * Invariants. Each eval runs once per step and generation, however often it is requested: its Idempotency-Key has the
 * step, the generation and its place in the list. The lead limit does not delay evals. An eval that cannot start is
 * given up after some tries, and the training continues. A cancelled training run cancels its running evals; a reset
 * cancels those of discarded weights.
 */
import { RunRequest, type RunView } from "../../../contract/run.ts";
import type { RunFleet } from "../../../contract/run-spec.ts";
import { cacheSalt, evalSampling } from "../../../contract/sampling.ts";
import type { Scope } from "../../../contract/scope.ts";
import {
  type AskedEval,
  evalName,
  evalPlayed,
  evalsOf,
  evalsOwn,
  REFERENCE_JUDGE,
} from "../../../contract/training-request.ts";
import type { ResolvedDataset } from "../../dataset/resolve.ts";
import { databaseOf } from "../../db/database.ts";
import { getRun } from "../../db/runs.ts";
import type { CreateOptions } from "../../kit/idempotency.ts";
import { idsOf, logError } from "../../kit/log.ts";
import { runObject } from "../../kit/names.ts";
import { sha256Hex } from "../../kit/secrets.ts";
import { Subrequests } from "../../kit/subrequests.ts";
import type { Result } from "../../messages/refusal.ts";
import type { RunSpec } from "../../messages/wire.ts";
import type { RunStore } from "../store.ts";
import { evaluatedStep, type TrainEval, withEvaluated } from "../training-state.ts";

const LOOK_MS = 2000;
const LONGEST_LOOK_MS = 60_000;
const MOST_TRIES_TO_BEGIN = 5;

type Weights = Pick<RunFleet, "weights_of" | "initial_weights">;

/** Accepts an eval in the same way as the API accepts a run. */
export type AcceptEval = (
  env: Env,
  scope: Scope,
  request: RunRequest,
  options: CreateOptions & { readonly byRun: true; readonly rows?: ResolvedDataset; readonly weights: Weights },
) => Promise<Result<{ readonly run: Pick<RunView, "id"> }>>;

export class TrainingEvals {
  readonly #env: Env;
  readonly #accept: AcceptEval;
  readonly #store: RunStore;
  readonly #now: () => number;

  constructor(env: Env, store: RunStore, now: () => number, accept: AcceptEval) {
    this.#env = env;
    this.#accept = accept;
    this.#store = store;
    this.#now = now;
  }

  /** Epoch milliseconds; null if there is nothing to do. */
  nextAt({ training }: RunSpec): number | null {
    const asked = evalsOf(training);
    if (asked.length === 0) return null;
    if (dueSteps(this.#store, asked).length > 0) return this.#now();
    const due = this.#store.training.openEvals().map(({ due_at }) => due_at);
    if (due.length > 0 && this.#isCancelled()) return this.#now();
    return due.length === 0 ? null : Math.min(...due);
  }

  /** Starts evals that are due, and follows running ones. */
  async advance(spec: RunSpec): Promise<void> {
    const asked = evalsOf(spec.training);
    if (asked.length === 0) return;
    const subrequests = new Subrequests();
    if (this.#isCancelled()) return await this.#cancelAll(spec, subrequests);
    noteDue(this.#store, asked, this.#now());
    for (const entry of this.#store.training.openEvals()) {
      if (entry.due_at > this.#now()) continue;
      const own = asked[entry.place];
      if (own === undefined || this.#isVoid(entry)) await this.#cancel(spec, entry, subrequests);
      else if (entry.run_id === null) await this.#begin(spec, own, entry);
      else await this.#follow(spec, own, { ...entry, run_id: entry.run_id }, subrequests);
    }
  }

  async #begin(spec: RunSpec, asked: AskedEval, entry: TrainEval): Promise<void> {
    const { scope, run_id } = spec;
    const request = requestOf(spec, asked, entry);
    const idempotencyKey = keyOf(run_id, entry);
    // Release 0.2 hashed the same request without `prompts`.
    const { prompts: _, ...hashed } = request;
    const requestHash = sha256Hex(JSON.stringify(hashed));
    const rows = await rowsOf(this.#env, spec, asked);
    const payer = spec.money?.payer ?? run_id;
    const from = spec.origin === undefined ? {} : { origin: spec.origin };
    const { initial_weights } = spec.fleet ?? {};
    const weights = { weights_of: run_id, ...(initial_weights !== undefined && { initial_weights }) };
    const begun = { byRun: true as const, weights, ...from, ...rows };
    const options = { idempotencyKey, requestHash, now: this.#now(), payer, ...begun };
    const accepted = await this.#accept(this.#env, scope, request, options);
    if (accepted.ok) {
      const { id } = accepted.value.run;
      this.#later(entry, { run_id: id, state: "running", tries: 0 });
      return;
    }
    const { message } = accepted.error;
    logError("eval of a training run", idsOf(spec), new Error(message));
    const state = entry.tries + 1 >= MOST_TRIES_TO_BEGIN ? "failed" : "due";
    this.#later(entry, { state, tries: entry.tries + 1 });
  }

  async #follow(
    spec: RunSpec,
    asked: AskedEval,
    entry: TrainEval & { readonly run_id: string },
    subrequests: Subrequests,
  ): Promise<void> {
    const run = runObject(this.#env, spec.scope, entry.run_id);
    const view = await subrequests.object(() => run.view());
    if (view === null) {
      // The eval was deleted.
      this.#store.training.setEval(entry, { state: "failed" });
      return;
    }
    if (view.settled_at === null) {
      this.#later(entry, { tries: entry.tries + 1 });
      return;
    }
    this.#store.transaction(() => {
      this.#store.training.setEval(entry, { state: "done" });
      const { mean } = view.report.reward;
      const values = { [`eval/${evalName(asked, spec.environment)}/reward`]: mean };
      this.#store.training.noteStep(entry.step, this.#now(), values);
    });
  }

  #isCancelled(): boolean {
    return this.#store.head().stop?.kind === "cancel";
  }

  /** True for an eval of discarded weights: its step number belongs to other weights now. */
  #isVoid({ step, generation }: TrainEval): boolean {
    const { training } = this.#store.head();
    if (training === null) return false;
    return generation < training.trainer.generation && step > training.trainer.reset_to;
  }

  async #cancelAll(spec: RunSpec, subrequests: Subrequests): Promise<void> {
    for (const entry of this.#store.training.openEvals()) {
      await this.#cancel(spec, entry, subrequests);
    }
  }

  /** Cancels an eval whose result is not needed any more. */
  async #cancel({ scope }: RunSpec, entry: TrainEval, subrequests: Subrequests): Promise<void> {
    const { run_id } = entry;
    if (run_id !== null) {
      await subrequests.object(() => runObject(this.#env, scope, run_id).cancel());
    }
    this.#store.training.setEval(entry, { state: "failed" });
  }

  #later(entry: TrainEval, columns: Partial<TrainEval>): void {
    const wait = Math.min(LONGEST_LOOK_MS, LOOK_MS * 2 ** (columns.tries ?? 0));
    this.#store.training.setEval(entry, { ...columns, due_at: this.#now() + wait });
  }
}

/** The first eval has the key that a run's only eval had in earlier versions. */
function keyOf(run_id: string, { generation, step, place }: TrainEval): string {
  const key = `${run_id}/eval/${generation}/${step}`;
  return place === 0 ? key : `${key}/${place}`;
}

interface DueStep {
  /** Index in the list of evals. */
  readonly place: number;
  readonly step: number;
}

/** The evals that must be made of the weights that are served now, and at which step they are entered. */
function dueSteps(store: RunStore, asked: readonly AskedEval[]): DueStep[] {
  const { training, stop } = store.head();
  if (training === null || stop !== null) return [];
  const { serving } = training.trainer;
  return asked.flatMap(({ every, at_start }, place) => {
    const step = serving - (serving % every);
    return step > evaluatedStep(training, place) && (step > 0 || at_start) ? [{ place, step }] : [];
  });
}

function noteDue(store: RunStore, asked: readonly AskedEval[], now: number): void {
  store.transaction(() => {
    for (const { place, step } of dueSteps(store, asked)) {
      const head = store.head();
      const { training } = head;
      if (training === null) return;
      const { serving, generation } = training.trainer;
      store.training.addEval({ place, step, generation, policy_version: serving, due_at: now });
      store.saveHead({ ...head, training: withEvaluated(training, place, step) });
    }
  });
}

function requestOf(
  spec: RunSpec,
  asked: AskedEval,
  { step, generation, policy_version: version }: TrainEval,
): RunRequest {
  const { run_id, model, seed, max_concurrent, limits, agent, judges = {} } = spec;
  const targets = Object.entries(judges).flatMap(([name, { endpoint_id, model, sampling }]) => {
    return name === REFERENCE_JUDGE ? [] : [[name, { endpoint: endpoint_id, model, sampling }]];
  });
  return RunRequest.parse({
    kind: "eval",
    ...evalPlayed(asked, spec),
    ...{ model, seed, max_concurrent, limits },
    ...(agent !== undefined && { agent }),
    ...(spec.fleet === undefined ? { endpoint: spec.endpoint_id } : { fleet: spec.fleet.id }),
    judges: Object.fromEntries(targets),
    sampling: evalSampling(spec.sampling, cacheSalt({ run_id, generation, version })),
    metadata: { training_run: run_id, step: String(step), ...nameOf(spec, asked) },
  });
}

/** Not for a run's only eval in `eval`: its name is that of its environment. */
function nameOf({ training, environment }: RunSpec, asked: AskedEval): { readonly eval?: string } {
  return training?.evals === undefined ? {} : { eval: evalName(asked, environment) };
}

/** The rows uploaded with the run, for an eval of its own environment: the held-out rows come first. */
async function rowsOf(
  env: Env,
  { scope, run_id, dataset, environment }: RunSpec,
  asked: AskedEval,
): Promise<{ readonly rows?: ResolvedDataset }> {
  const { length } = dataset;
  if (dataset.key === null || length === null || !evalsOwn(asked, environment)) return {};
  const found = await getRun(databaseOf(env), scope, run_id);
  return { rows: { id: found?.run.dataset_id ?? null, dataset: { ...dataset, length } } };
}
