/**
 * A typed client of the HTTP API, on `fetch` alone: it runs in Node, in browsers and in Workers.
 *
 * Invariants. One method for each route, and an iterator for each list. Every POST carries an Idempotency-Key, so a call
 * is made again by itself where that may help (transport.ts). Replies are typed by the schemas the server writes them
 * by, and not validated again: a newer server may say more than these types know.
 *
 * Every method throws ApiRequestError when the API refuses, a TypeError when the platform cannot be reached, a
 * DOMException named TimeoutError when it stays silent, and the reason of `signal` when that aborts.
 */

import type { RunAudit } from "../contract/audit.ts";
import type { ComparedTask, RunComparison } from "../contract/comparison.ts";
import type { DeletionView } from "../contract/deletion.ts";
import type { Deleted } from "../contract/endpoint.ts";
import type { DpoRow, ExportFormat, LeftOutNote, SftRow, VerifiersRow } from "../contract/export.ts";
import { environmentLabel, remainingInputs } from "../contract/output-rows.ts";
import type {
  CreatedRun,
  EnvironmentView,
  Outcome,
  ResultRow,
  RolloutView,
  RunRequestInput,
  RunStatus,
  RunView,
} from "../contract/run.ts";
import type { ForkRequestInput, RescoreRequestInput, RetryRequest, RunPatch } from "../contract/run-control.ts";
import type { RunEvent } from "../contract/run-events.ts";
import type { RunPreview } from "../contract/run-preview.ts";
import type { StepMetrics, TrainerSecrets, TrainingView } from "../contract/training-view.ts";
import type { DatasetRow, DatasetView } from "../contract/uploaded-dataset.ts";
import { type DatasetSource, datasetBodyOf } from "./dataset-body.ts";
import { EndpointsClient } from "./endpoints-client.ts";
import { type FollowOptions, followEvents } from "./event-stream.ts";
import type {
  CallOptions,
  CompareRunsQuery,
  DatasetOptions,
  ExportOptions,
  ExportRows,
  ExportRunQuery,
  ListQuery,
  MetricsQuery,
  Page,
  PostOptions,
  RowQuery,
  RunQuery,
} from "./options.ts";
import { ApiRequestError } from "./request-error.ts";
import { type ClientOptions, eachOf, headersOf, Requests, search } from "./requests.ts";

export type {
  AcceptedInvitation,
  ApiKeyView,
  CreatedInvitation,
  CreatedKey,
  CreatedOrganization,
  InvitationView,
  ListedOrganization,
  OrganizationView,
  PersonView,
  ProjectView,
  WhoAmI,
} from "../contract/accounts.ts";
export type { ApiError, ErrorCode } from "../contract/api-error.ts";
export type { AuditEntry } from "../contract/audit-log.ts";
export type { BalanceView, BudgetView, CheckoutView, LedgerVerification, PostedEntry } from "../contract/billing.ts";
export type { EndpointPatch, EndpointRequestInput, EndpointView, SecretView } from "../contract/endpoint.ts";
export type { FleetPatch, FleetRequestInput, FleetView, ReplicaPatch, ReplicaView } from "../contract/fleet.ts";
export type { LedgerEntry, PriceList, PriceLists } from "../contract/money.ts";
export type {
  GroupSummary,
  GroupSummaryList,
  GroupView,
  Histogram,
  RolloutSummary,
  RolloutSummaryList,
} from "../contract/rollout-list.ts";
export type { RolloutFinished } from "../contract/run.ts";
export type { RunEnded, RunProgress, RunSnapshot } from "../contract/run-events.ts";
export type {
  Outline,
  OutlineTurn,
  RolloutHead,
  ShownTurn,
  TurnPage,
  TurnTokenPage,
  WholeTurn,
} from "../contract/turns.ts";
export type { SessionView, SignInCode } from "../contract/web-session.ts";
export type { CreatedReportLink, ReportLinkView, SharedReport } from "../sharing/wire.ts";
export type { CreatedTrigger, TriggerDelivery, TriggerReceipt, TriggerTest, TriggerView } from "../triggers/wire.ts";
export type { CreatedWebhook, Replayed, WebhookDelivery, WebhookEvent, WebhookView } from "../webhooks/wire.ts";
export type * from "./options.ts";
export type {
  ClientOptions,
  ComparedTask,
  CreatedRun,
  DatasetRow,
  DatasetSource,
  DatasetView,
  Deleted,
  DpoRow,
  EnvironmentView,
  ExportFormat,
  FollowOptions,
  ForkRequestInput,
  LeftOutNote,
  ListQuery,
  Outcome,
  Page,
  RescoreRequestInput,
  ResultRow,
  RetryRequest,
  RolloutView,
  RunAudit,
  RunComparison,
  RunEvent,
  RunPatch,
  RunRequestInput,
  RunStatus,
  RunView,
  SftRow,
  StepMetrics,
  TrainerSecrets,
  TrainingView,
  VerifiersRow,
};
export { ApiRequestError, environmentLabel, remainingInputs };

export class RollcallClient extends EndpointsClient {
  constructor(options: ClientOptions) {
    super(new Requests(options));
  }

  /** Starts a run; it goes on by itself. What a training run's trainer authenticates with is said here only. */
  createRun(request: RunRequestInput, options: PostOptions = {}): Promise<CreatedRun> {
    return this.requests.post("/runs", request, options);
  }

  /** What a run would probably cost. Nothing is begun. */
  previewRun(request: RunRequestInput, options: PostOptions = {}): Promise<RunPreview> {
    return this.requests.post("/runs/preview", request, options);
  }

  /** The run with its counts and its report so far. */
  getRun(runId: string, options: CallOptions = {}): Promise<RunView> {
    return this.requests.json(`/runs/${encodeURIComponent(runId)}`, options);
  }

  /** Ends a run early. An ended run stays as it is. */
  cancelRun(runId: string, options: PostOptions = {}): Promise<RunView> {
    return this.requests.post(`/runs/${encodeURIComponent(runId)}/cancel`, {}, options);
  }

  /** Deletes a run and all it left, by a job; asked again, it gives the same deletion. */
  deleteRun(runId: string, options: CallOptions = {}): Promise<DeletionView> {
    return this.requests.json(`/runs/${encodeURIComponent(runId)}`, { ...options, method: "DELETE" });
  }

  getDeletion(id: string, options: CallOptions = {}): Promise<DeletionView> {
    return this.requests.json(`/deletions/${encodeURIComponent(id)}`, options);
  }

  listDeletions(query: ListQuery = {}, options: CallOptions = {}): Promise<Page<DeletionView>> {
    return this.requests.json(`/deletions${search(query)}`, options);
  }

  deletions(query: ListQuery = {}, options: CallOptions = {}): AsyncGenerator<DeletionView> {
    return eachOf(query, (page) => this.listDeletions(page, options));
  }

  /** Dispatches nothing more until it is resumed; what runs finishes. */
  pauseRun(runId: string, options: PostOptions = {}): Promise<RunView> {
    return this.requests.post(`/runs/${encodeURIComponent(runId)}/pause`, {}, options);
  }

  resumeRun(runId: string, options: PostOptions = {}): Promise<RunView> {
    return this.requests.post(`/runs/${encodeURIComponent(runId)}/resume`, {}, options);
  }

  /** Only what is named changes; `max_concurrent` counts at once. */
  updateRun(runId: string, patch: RunPatch, options: CallOptions = {}): Promise<RunView> {
    return this.requests.patch(`/runs/${encodeURIComponent(runId)}`, patch, options);
  }

  /** Another attempt for what failed or has no score. Refused with `conflict` for a cancelled run. */
  retryRun(runId: string, request: RetryRequest = {}, options: PostOptions = {}): Promise<RunView> {
    return this.requests.post(`/runs/${encodeURIComponent(runId)}/retry`, request, options);
  }

  /** What its cap holds for lost calls counts no more. For owners: it takes `billing:write` in the whole organisation. */
  releaseLostCalls(runId: string, options: PostOptions = {}): Promise<RunView> {
    return this.requests.post(`/runs/${encodeURIComponent(runId)}/release-lost-calls`, {}, options);
  }

  /** A new run that scores what an ended one left behind, with another rubric. No model of its own is called. */
  rescoreRun(runId: string, request: RescoreRequestInput = {}, options: PostOptions = {}): Promise<RunView> {
    return this.requests.post(`/runs/${encodeURIComponent(runId)}/rescore`, request, options);
  }

  /** What four records say of the run, and where they differ. */
  auditRun(runId: string, options: CallOptions = {}): Promise<RunAudit> {
    return this.requests.json(`/runs/${encodeURIComponent(runId)}/audit`, options);
  }

  /**
   * The paired difference between a run and a baseline, with one page of the tasks that flipped, or of others. Refused with `conflict`
   * where no task is scored in both.
   */
  compareRuns(runId: string, query: CompareRunsQuery, options: CallOptions = {}): Promise<RunComparison> {
    return this.requests.json(ofRun(runId, "compare", query), options);
  }

  /** One page of runs, newest first unless `order` says otherwise. */
  listRuns(query: RunQuery = {}, options: CallOptions = {}): Promise<Page<RunView>> {
    return this.requests.json(`/runs${search(query)}`, options);
  }

  /** Every run, page after page. */
  runs(query: RunQuery = {}, options: CallOptions = {}): AsyncGenerator<RunView> {
    return eachOf(query, (page) => this.listRuns(page, options));
  }

  /**
   * A run's events from `after` on (default: all), until the one that ends the run. A stream that breaks off or ends is
   * opened again behind the last event seen; 30 connections in a row that bring nothing end it with a TimeoutError.
   */
  events(runId: string, options: FollowOptions = {}): AsyncGenerator<RunEvent> {
    return followEvents(this.requests, `${this.requests.base}/runs/${encodeURIComponent(runId)}/events`, options);
  }

  /** The series of a training run by step, a page of it; goes on after `last_id`. */
  runMetrics(runId: string, query: MetricsQuery = {}, options: CallOptions = {}): Promise<Page<StepMetrics>> {
    return this.requests.json(ofRun(runId, "metrics", query), options);
  }

  /** Another token for a training run's trainer; the one before works for an hour more, or `overlap_s` seconds. */
  rotateTrainerToken(
    runId: string,
    { overlap_s, ...options }: PostOptions & { readonly overlap_s?: number } = {},
  ): Promise<TrainerSecrets> {
    return this.requests.post(ofRun(runId, "trainer/token", { overlap_s }), {}, options);
  }

  /** Every finished rollout of a run so far, in the order they ended, page after page. */
  results(
    runId: string,
    query: RowQuery & { readonly outcome?: Outcome | undefined } = {},
    options: CallOptions = {},
  ): AsyncGenerator<ResultRow> {
    return this.requests.rows(ofRun(runId, "results", query), options);
  }

  /** Rows for training, made of what had ended when the first page was asked for; page after page. */
  exportRun<Format extends ExportFormat = "sft">(
    runId: string,
    query: ExportRunQuery<Format> = {},
    { onLeftOut, ...options }: ExportOptions = {},
  ): AsyncGenerator<ExportRows[Format]> {
    return this.requests.rows(ofRun(runId, "export", query), options, (headers) => {
      const note = headers.get("x-left-out");
      if (note !== null) onLeftOut?.(JSON.parse(note) as LeftOutNote);
    });
  }

  /** One rollout, read whole; before it is done, what is stored of it so far. */
  getRollout(rolloutId: string, options: CallOptions = {}): Promise<RolloutView> {
    return this.requests.json(`/rollouts/${encodeURIComponent(rolloutId)}`, options);
  }

  /** Ends one rollout early; its run goes on. */
  cancelRollout(rolloutId: string, options: PostOptions = {}): Promise<RolloutView> {
    return this.requests.post(`/rollouts/${encodeURIComponent(rolloutId)}/cancel`, {}, options);
  }

  /** A new run whose rollouts go on behind a turn of an ended one. */
  forkRollout(rolloutId: string, request: ForkRequestInput, options: PostOptions = {}): Promise<RunView> {
    return this.requests.post(`/rollouts/${encodeURIComponent(rolloutId)}/fork`, request, options);
  }

  /** The environments a run may name. */
  async environments(options: CallOptions = {}): Promise<readonly EnvironmentView[]> {
    const page: Page<EnvironmentView> = await this.requests.json("/environments", options);
    return page.data;
  }

  /** By `id` or `id@version`. */
  environment(id: string, options: CallOptions = {}): Promise<EnvironmentView> {
    return this.requests.json(`/environments/${encodeURIComponent(id)}`, options);
  }

  /**
   * Uploads rows as a dataset. An upload has no timeout unless `timeoutMs` is given. A stream or an async iterable is
   * read as it is sent and never sent twice; browsers send one over HTTP/2 only, and want a Blob otherwise.
   */
  createDataset(source: DatasetSource, options: DatasetOptions = {}): Promise<DatasetView> {
    const { name, environment, environmentArgs } = options;
    const query = search({
      name,
      environment,
      environment_args: environmentArgs && JSON.stringify(environmentArgs),
    });
    const { idempotencyKey, signal, timeoutMs = null } = options;
    return this.requests.json(`/datasets${query}`, {
      method: "POST",
      headers: headersOf("application/jsonl", idempotencyKey),
      ...datasetBodyOf(source),
      signal,
      timeoutMs,
    });
  }

  getDataset(idOrName: string, options: CallOptions = {}): Promise<DatasetView> {
    return this.requests.json(`/datasets/${encodeURIComponent(idOrName)}`, options);
  }

  listDatasets(query: ListQuery = {}, options: CallOptions = {}): Promise<Page<DatasetView>> {
    return this.requests.json(`/datasets${search(query)}`, options);
  }

  datasets(query: ListQuery = {}, options: CallOptions = {}): AsyncGenerator<DatasetView> {
    return eachOf(query, (page) => this.listDatasets(page, options));
  }

  /** Every row of a dataset in its order, page after page. */
  datasetRows(idOrName: string, query: RowQuery = {}, options: CallOptions = {}): AsyncGenerator<DatasetRow> {
    return this.requests.rows(`/datasets/${encodeURIComponent(idOrName)}/rows${search(query)}`, options);
  }

  /** Refused with `conflict` while an unfinished run names it. */
  deleteDataset(idOrName: string, options: CallOptions = {}): Promise<Deleted> {
    return this.requests.delete(`/datasets/${encodeURIComponent(idOrName)}`, options);
  }
}

function ofRun(runId: string, what: string, query: object): string {
  return `/runs/${encodeURIComponent(runId)}/${what}${search(query)}`;
}
