/** Runs: evals and trainings. */
import type { AgreementSummaryList, RunAgreement } from "../contract/agreement.ts";
import type { ChargeAudit, RunAudit } from "../contract/audit.ts";
import type { RunComparison, TaskComparison } from "../contract/comparison.ts";
import type { DeletionView } from "../contract/deletion.ts";
import type { ExportFormat, LeftOutNote } from "../contract/export.ts";
import type { Histogram } from "../contract/rollout-list.ts";
import type { CreatedRun, Outcome, ResultRow, RunRequestInput, RunView } from "../contract/run.ts";
import type { RescoreRequestInput, RetryRequest, RunPatch } from "../contract/run-control.ts";
import type { RunEvent } from "../contract/run-events.ts";
import type { RunPreview } from "../contract/run-preview.ts";
import type { StepMetrics, TrainerSecrets } from "../contract/training-view.ts";
import { type FollowOptions, followEvents } from "./event-stream.ts";
import { Groups } from "./groups.ts";
import type {
  CallOptions,
  CompareRunsQuery,
  CompareTasksOfRunsQuery,
  ExportOptions,
  ExportRows,
  ExportRunQuery,
  HistogramQuery,
  MetricsQuery,
  Page,
  PostOptions,
  RowQuery,
  RunQuery,
} from "./options.ts";
import { filtered, pathTo, search } from "./requests.ts";
import { Editable } from "./resource.ts";

/**
 * `create` starts a run, which continues by itself; only its reply has the secrets of a training run's trainer.
 * `update` of `max_concurrent` takes effect at once. `delete` starts a job that deletes the run and all its results;
 * called again, it returns the same deletion.
 */
export class Runs extends Editable<RunView, RunRequestInput, RunPatch, CreatedRun, DeletionView, RunQuery> {
  protected readonly path = "/runs";
  readonly groups: Groups = new Groups(this.requests);

  /** Estimates the cost of a run. Starts nothing. */
  preview(request: RunRequestInput, options: PostOptions = {}): Promise<RunPreview> {
    return this.requests.post("/runs/preview", request, options);
  }

  /** How far the scores and judges of the run agree with the people who reviewed it. */
  agreement(runId: string, options: CallOptions = {}): Promise<RunAgreement> {
    return this.requests.json(pathTo`/runs/${runId}/agreement`, options);
  }

  /** The same for up to 100 runs, without the details. Runs without reviews are left out. */
  agreements(runIds: readonly string[], options: CallOptions = {}): Promise<AgreementSummaryList> {
    return this.requests.json(`/agreements${search({ runs: runIds.join(",") })}`, options);
  }

  /** Ends a run early. A run that has ended is not changed. */
  cancel(runId: string, options: PostOptions = {}): Promise<RunView> {
    return this.requests.post(pathTo`/runs/${runId}/cancel`, {}, options);
  }

  /** Starts no more rollouts until the run is resumed; those in flight finish. */
  pause(runId: string, options: PostOptions = {}): Promise<RunView> {
    return this.requests.post(pathTo`/runs/${runId}/pause`, {}, options);
  }

  resume(runId: string, options: PostOptions = {}): Promise<RunView> {
    return this.requests.post(pathTo`/runs/${runId}/resume`, {}, options);
  }

  /** Starts another attempt for each rollout that failed or has no score. Throws `conflict` for a cancelled run. */
  retry(runId: string, request: RetryRequest = {}, options: PostOptions = {}): Promise<RunView> {
    return this.requests.post(pathTo`/runs/${runId}/retry`, request, options);
  }

  /** A new run that scores the trajectories of an ended one with another rubric. It does not call the model. */
  rescore(runId: string, request: RescoreRequestInput = {}, options: PostOptions = {}): Promise<RunView> {
    return this.requests.post(pathTo`/runs/${runId}/rescore`, request, options);
  }

  /**
   * Releases the part of the run's cap that is reserved for lost calls. For owners: it needs a key of the whole
   * organisation with `billing:write`.
   */
  releaseLostCalls(runId: string, options: PostOptions = {}): Promise<RunView> {
    return this.requests.post(pathTo`/runs/${runId}/release-lost-calls`, {}, options);
  }

  /** Compares four records of the run. */
  audit(runId: string, options: CallOptions = {}): Promise<RunAudit> {
    return this.requests.json(pathTo`/runs/${runId}/audit`, options);
  }

  /**
   * Compares a slice of the run's charges with its stored rollouts. `next` of a slice is `after` of the following one.
   */
  auditCharges(
    runId: string,
    query: { readonly after?: number | undefined } = {},
    options: CallOptions = {},
  ): Promise<ChargeAudit> {
    return this.requests.json(pathTo`/runs/${runId}/charges` + search(query), options);
  }

  /**
   * The paired difference between a run and a baseline, with one page of the tasks that flipped, or of others. Throws
   * `conflict` if no task is scored in both.
   */
  compare(runId: string, query: CompareRunsQuery, options: CallOptions = {}): Promise<RunComparison> {
    return this.requests.json(pathTo`/runs/${runId}/compare` + search(query), options);
  }

  /** One page of the tasks on which a run differs from at least one of the baselines, with the mean of each run. */
  compareTasks(
    runId: string,
    { baselines, ...query }: CompareTasksOfRunsQuery,
    options: CallOptions = {},
  ): Promise<Page<TaskComparison>> {
    const asked = { ...query, baselines: baselines.join(",") };
    return this.requests.json(pathTo`/runs/${runId}/compare/tasks` + search(asked), options);
  }

  /**
   * A run's events after `after` (default: all), until the one that ends the run. A stream that breaks or ends is
   * opened again after the last event seen; after 30 consecutive connections without an event it throws a TimeoutError.
   */
  events(runId: string, options: FollowOptions = {}): AsyncGenerator<RunEvent> {
    return followEvents(this.requests, this.requests.base + pathTo`/runs/${runId}/events`, options);
  }

  /** Every finished rollout of a run so far, in the order they ended, page after page. */
  results(
    runId: string,
    query: RowQuery & { readonly outcome?: Outcome | undefined } = {},
    options: CallOptions = {},
  ): AsyncGenerator<ResultRow> {
    return this.requests.rows(pathTo`/runs/${runId}/results` + search(query), options);
  }

  /** Rows for training, from the rollouts that had ended when the first page was requested; page after page. */
  export<Format extends ExportFormat = "sft">(
    runId: string,
    query: ExportRunQuery<Format> = {},
    { onLeftOut, ...options }: ExportOptions = {},
  ): AsyncGenerator<ExportRows[Format]> {
    return this.requests.rows(pathTo`/runs/${runId}/export` + search(query), options, (headers) => {
      const note = headers.get("x-left-out");
      if (note !== null) onLeftOut?.(JSON.parse(note) as LeftOutNote);
    });
  }

  /** The distribution of a measure of the run's rollouts: the reward, unless `of` names another. */
  histogram(runId: string, query: HistogramQuery = {}, options: CallOptions = {}): Promise<Histogram> {
    return this.requests.json(pathTo`/runs/${runId}/histogram` + search(filtered(query)), options);
  }

  /** One page of a training run's metrics by step. `last_id` is `after_step` of the next page. */
  metrics(runId: string, query: MetricsQuery = {}, options: CallOptions = {}): Promise<Page<StepMetrics>> {
    return this.requests.json(pathTo`/runs/${runId}/metrics` + search(query), options);
  }

  /** Creates a new token for a training run's trainer; the old one works for one more hour, or `overlap_s` seconds. */
  rotateTrainerToken(
    runId: string,
    { overlap_s, ...options }: PostOptions & { readonly overlap_s?: number } = {},
  ): Promise<TrainerSecrets> {
    return this.requests.post(pathTo`/runs/${runId}/trainer/token` + search({ overlap_s }), {}, options);
  }
}
