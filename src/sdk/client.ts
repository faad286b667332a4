/**
 * A typed client of the HTTP API. It only needs `fetch`, so it runs in Node, in browsers and in Workers.
 *
 * Invariants. Each route has one method, in the resource of its noun. Every POST has an Idempotency-Key, so the client
 * can retry calls by itself where that may help (transport.ts). Replies have the types of the server's schemas, but are
 * not validated again: a newer server may send fields that these types do not have.
 *
 * Every method throws ApiRequestError if the API refuses the call, a TypeError if the platform cannot be reached, a
 * DOMException named TimeoutError if it does not answer in time, and the reason of `signal` if that aborts.
 */

import type { WhoAmI } from "../accounts/wire.ts";
import { environmentLabel, remainingInputs } from "../contract/output-rows.ts";
import { Agents } from "./agents.ts";
import { AuditLog } from "./audit-log.ts";
import { Balance } from "./balance.ts";
import { Budgets } from "./budgets.ts";
import { Checkouts } from "./checkouts.ts";
import { DatasetUploads } from "./dataset-uploads.ts";
import { Datasets } from "./datasets.ts";
import { Deletions } from "./deletions.ts";
import { Endpoints } from "./endpoints.ts";
import { Environments } from "./environments.ts";
import { Fleets } from "./fleets.ts";
import { Invitations } from "./invitations.ts";
import { Keys } from "./keys.ts";
import { Ledger } from "./ledger.ts";
import type { CallOptions } from "./options.ts";
import { Organization } from "./organization.ts";
import { Organizations } from "./organizations.ts";
import { People } from "./people.ts";
import { Prices } from "./prices.ts";
import { Projects } from "./projects.ts";
import { ReportLinks } from "./report-links.ts";
import { ApiRequestError } from "./request-error.ts";
import { type ClientOptions, Requests } from "./requests.ts";
import { Resource } from "./resource.ts";
import { Reviews } from "./reviews.ts";
import { Rollouts } from "./rollouts.ts";
import { Runs } from "./runs.ts";
import { Secrets } from "./secrets.ts";
import { Sessions } from "./sessions.ts";
import { Statements } from "./statements.ts";
import { Triggers } from "./triggers.ts";
import { Usage } from "./usage.ts";
import { WebhookEndpoints } from "./webhook-endpoints.ts";

export type {
  AcceptedInvitation,
  ApiKeyView,
  AuditEntry,
  CreatedInvitation,
  CreatedKey,
  CreatedOrganization,
  InvitationView,
  ListedOrganization,
  OrganizationView,
  PersonView,
  ProjectView,
  SessionView,
  SignInCode,
} from "../accounts/wire.ts";
export type {
  AgentHeartbeat,
  AgentLeaseRequestInput,
  CreatedRollout,
  FinishedRollout,
  LeasedRollout,
  LeaseStates,
  RolloutFinishInput,
  RolloutRequestInput,
} from "../agents/wire.ts";
export type { BalanceView, BudgetView, CheckoutView, LedgerVerification, PostedEntry } from "../billing/wire.ts";
export type { AgreementItem, AgreementSummary, AgreementSummaryList, RunAgreement } from "../contract/agreement.ts";
export type { ApiError, ErrorCode } from "../contract/api-error.ts";
export type { RunAudit } from "../contract/audit.ts";
export type { ComparedTask, RunComparison } from "../contract/comparison.ts";
export type { DatasetUploadPart, DatasetUploadProgress, DatasetUploadView } from "../contract/dataset-upload.ts";
export type { Deleted, EndpointPatch, EndpointRequestInput, EndpointView, SecretView } from "../contract/endpoint.ts";
export type { DpoRow, ExportFormat, LeftOutNote, SftRow, VerifiersRow } from "../contract/export.ts";
export type { LedgerEntry, PriceList, PriceLists } from "../contract/money.ts";
export type {
  GrantView,
  PublishedVersion,
  PublishedVersionPatch,
  TagView,
  Visibility,
} from "../contract/published-environment.ts";
export type {
  GroupSummary,
  GroupSummaryList,
  GroupView,
  Histogram,
  RolloutSummary,
  RolloutSummaryList,
} from "../contract/rollout-list.ts";
export type { RowReview } from "../contract/row-review.ts";
export type {
  CreatedRun,
  EnvironmentView,
  Outcome,
  ResultRow,
  RolloutFinished,
  RolloutView,
  RunRequestInput,
  RunStatus,
  RunView,
} from "../contract/run.ts";
export type { ForkRequestInput, RescoreRequestInput, RetryRequest, RunPatch } from "../contract/run-control.ts";
export type { RunEnded, RunEvent, RunProgress, RunSnapshot } from "../contract/run-events.ts";
export type { StepMetrics, TrainerSecrets, TrainingView } from "../contract/training-view.ts";
export type {
  Outline,
  OutlineTurn,
  RolloutHead,
  ShownTurn,
  TurnPage,
  TurnTokenPage,
  WholeTurn,
} from "../contract/turns.ts";
export type { DatasetRow, DatasetView } from "../contract/uploaded-dataset.ts";
export type { FleetPatch, FleetRequestInput, FleetView, ReplicaPatch, ReplicaView } from "../fleets/wire.ts";
export type { ReviewRequestInput, ReviewView } from "../reviews/wire.ts";
export type { CreatedReportLink, ReportLinkView, SharedReport } from "../sharing/wire.ts";
export type { CreatedTrigger, TriggerDelivery, TriggerReceipt, TriggerTest, TriggerView } from "../triggers/wire.ts";
export type { CreatedWebhook, Replayed, WebhookDelivery, WebhookEvent, WebhookView } from "../webhooks/wire.ts";
export type { DatasetSource } from "./dataset-body.ts";
export type { EnvironmentQuery, PublishOptions } from "./environments.ts";
export type { FollowOptions } from "./event-stream.ts";
export type * from "./options.ts";
export type { PagePromise } from "./requests.ts";
export type { ClientOptions, WhoAmI };
export { ApiRequestError, environmentLabel, remainingInputs };

export class RollcallClient extends Resource {
  readonly runs: Runs = new Runs(this.requests);
  readonly rollouts: Rollouts = new Rollouts(this.requests);
  readonly agents: Agents = new Agents(this.requests);
  readonly reviews: Reviews = new Reviews(this.requests);
  readonly reportLinks: ReportLinks = new ReportLinks(this.requests);
  readonly environments: Environments = new Environments(this.requests);
  readonly datasets: Datasets = new Datasets(this.requests);
  readonly datasetUploads: DatasetUploads = new DatasetUploads(this.requests);
  readonly endpoints: Endpoints = new Endpoints(this.requests);
  readonly fleets: Fleets = new Fleets(this.requests);
  readonly secrets: Secrets = new Secrets(this.requests);
  readonly triggers: Triggers = new Triggers(this.requests);
  readonly webhookEndpoints: WebhookEndpoints = new WebhookEndpoints(this.requests);
  readonly deletions: Deletions = new Deletions(this.requests);
  readonly projects: Projects = new Projects(this.requests);
  readonly keys: Keys = new Keys(this.requests);
  readonly people: People = new People(this.requests);
  readonly invitations: Invitations = new Invitations(this.requests);
  readonly sessions: Sessions = new Sessions(this.requests);
  readonly organization: Organization = new Organization(this.requests);
  readonly auditLog: AuditLog = new AuditLog(this.requests);
  readonly usage: Usage = new Usage(this.requests);
  readonly statements: Statements = new Statements(this.requests);
  readonly balance: Balance = new Balance(this.requests);
  readonly ledger: Ledger = new Ledger(this.requests);
  readonly budgets: Budgets = new Budgets(this.requests);
  readonly prices: Prices = new Prices(this.requests);
  readonly checkouts: Checkouts = new Checkouts(this.requests);
  readonly organizations: Organizations = new Organizations(this.requests);

  constructor(options: ClientOptions) {
    super(new Requests(options));
  }

  /** The owner and the permissions of the key. */
  whoAmI(options: CallOptions = {}): Promise<WhoAmI> {
    return this.requests.json("/whoami", options);
  }
}
