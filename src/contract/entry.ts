/**
 * What a client imports from `rollcall/contract`: the schemas of requests, replies, events and rows, the types that follow
 * from them, and the words that their fields take. The server parses by the same schemas.
 */

export {
  AcceptedInvitation,
  AcceptRequest,
  type AcceptRequestInput,
  ApiKeyList,
  ApiKeyView,
  BootstrapRequest,
  CreatedInvitation,
  CreatedKey,
  CreatedOrganization,
  InvitationList,
  InvitationRequest,
  InvitationView,
  KeyPatch,
  KeyRequest,
  type KeyRequestInput,
  LimitsRequest,
  ListedOrganization,
  OrganizationList,
  OrganizationPatch,
  OrganizationRequest,
  type OrganizationRequestInput,
  OrganizationView,
  PersonList,
  PersonPatch,
  PersonView,
  ProjectList,
  ProjectPatch,
  ProjectRequest,
  type ProjectRequestInput,
  ProjectView,
  RotateRequest,
  type RotateRequestInput,
  WhoAmI,
} from "./accounts.ts";
export { ApiError, ERROR_CODES, type ErrorCode, type ErrorDetails, STATUS_OF } from "./api-error.ts";
export { AUDIT_RULES, type AuditRule, AuditViolation, ChargeAudit, RunAudit } from "./audit.ts";
export { AuditEntry, AuditList } from "./audit-log.ts";
export { BatchFormat, type FormatQuery } from "./batch-format.ts";
export { BATCH_SHA256_HEADER, CUT_ROWS_HEADER } from "./batch-headers.ts";
export {
  ADJUSTMENT_KINDS,
  AdjustmentRequest,
  BalanceView,
  Billing,
  BUDGET_TARGETS,
  BudgetList,
  BudgetPatch,
  BudgetRequest,
  type BudgetTarget,
  BudgetView,
  CheckoutRequest,
  CheckoutView,
  CreditLimit,
  LedgerVerification,
  PostedEntry,
  StripeReceipt,
  TopUpRequest,
  type TopUpRequestInput,
} from "./billing.ts";
export { type ComparedTask, CompareQuery, RunComparison } from "./comparison.ts";
export {
  DELETION_KINDS,
  DELETION_STATES,
  type DeletionKind,
  DeletionList,
  DeletionView,
  OrganizationDeletion,
} from "./deletion.ts";
export {
  Deleted,
  EndpointCapabilities,
  EndpointList,
  EndpointOrName,
  EndpointPatch,
  EndpointRequest,
  type EndpointRequestInput,
  EndpointView,
  type EngineExactness,
  InlineEndpoint,
  SecretList,
  SecretPatch,
  SecretRequest,
  SecretView,
} from "./endpoint.ts";
export {
  CANCEL_REASONS,
  type CancelReason,
  FAILURE_CLASSES,
  type FailureClass,
  type SerializedError,
  UNSCORED_CAUSES,
  type UnscoredCause,
} from "./errors.ts";
export { EvalRequest, type EvalRequestInput, RunLimits } from "./eval-request.ts";
export { EVENT_NAMES, type EventName } from "./event-names.ts";
export {
  CALL_FAULTS,
  type CallFault,
  DpoRow,
  EXPORT_FORMATS,
  type ExportFormat,
  ExportQuery,
  LEFT_OUT,
  LeftOutNote,
  type LeftOutReason,
  SftRow,
  VerifiersRow,
} from "./export.ts";
export {
  FIELD_ALIASES,
  FLAG_FIELDS,
  type FlagField,
  LISTED_STATUSES,
  NUMBER_FIELDS,
  type NumberField,
  PREFIX_FIELDS,
  ROLLOUT_SORTS,
  type RolloutSort,
  WORD_FIELDS,
  type WordField,
} from "./filter.ts";
export {
  FleetOrName,
  FleetUpdate,
  LOCATION_HINTS,
  ReplicaCapabilities,
  UPDATE_MODES,
  UpdateMode,
} from "./fleet.ts";
export {
  DEFAULT_LIMITS,
  DEFAULT_RETENTION,
  OrganizationLimits,
  PERMISSIONS,
  Permission,
  Retention,
  ROLES,
  Role,
} from "./identity.ts";
export type { Json, JsonObject } from "./json.ts";
export { Cost, Judgement, JudgeTokens, JudgeUsage } from "./judgement.ts";
export { LIMITS } from "./limits.ts";
export {
  Content,
  type ContentPart,
  FinishReason,
  Message,
  Messages,
  ToolCall,
  type ToolDefinition,
  Usage,
} from "./messages.ts";
export {
  BILLING_MODES,
  type BillingMode,
  CHARGE_LINES,
  type ChargeLine,
  type ChargeLines,
  ENTRY_KINDS,
  type EntryKind,
  Fees,
  LedgerEntry,
  LedgerEntryList,
  ModelPrice,
  PriceList,
  PriceListRequest,
  type PriceListRequestInput,
  PriceLists,
  PriceVersion,
} from "./money.ts";
export { OUTBOUND_EVENTS, type OutboundEventName } from "./outbound-event.ts";
export { RunReport } from "./report.ts";
export { Resealed, ResealQuery, SEALED_KINDS, type SealedKind, UnopenedValue } from "./reseal.ts";
export {
  GROUP_SORTS,
  GroupQuery,
  type GroupSort,
  GroupSummary,
  GroupSummaryList,
  GroupView,
  HISTOGRAM_FIELDS,
  Histogram,
  type HistogramField,
  HistogramQuery,
  RolloutQuery,
  RolloutSummary,
  RolloutSummaryList,
} from "./rollout-list.ts";
export {
  CreatedRun,
  EnvironmentList,
  EnvironmentView,
  OUTCOMES,
  type Outcome,
  ResultRow,
  ROLLOUT_STATUSES,
  RolloutFinished,
  type RolloutStatus,
  RolloutView,
  RUN_KINDS,
  RUN_STATUSES,
  RunCounts,
  type RunKind,
  RunList,
  RunRequest,
  type RunRequestInput,
  type RunStatus,
  RunView,
} from "./run.ts";
export {
  ForkRequest,
  type ForkRequestInput,
  RETRY_CLASSES,
  RescoreRequest,
  type RescoreRequestInput,
  RetryRequest,
  RunPatch,
} from "./run-control.ts";
export {
  BatchAcked,
  BatchDead,
  BatchReady,
  RunEnded,
  RunEvent,
  RunPaused,
  RunProgress,
  RunSnapshot,
  WeightsApplied,
  WeightsPublished,
} from "./run-events.ts";
export { RunPreview } from "./run-preview.ts";
export { Sampling } from "./sampling.ts";
export { Month, StatementList, StatementView } from "./statement.ts";
export {
  Acked,
  AckRequest,
  type AckRequestInput,
  BatchManifest,
  BatchOffer,
  HeartbeatRequest,
  type HeartbeatRequestInput,
  Leased,
  LeaseRequest,
  type LeaseRequestInput,
  LeaseView,
  NackRequest,
  type NackRequestInput,
  OfferAcked,
  Registered,
  RegisterRequest,
  type RegisterRequestInput,
  TrainerMetrics,
  WeightsOut,
  WeightVersionReport,
  type WeightVersionReportInput,
  WeightVersions,
} from "./trainer-wire.ts";
export {
  Advantage,
  BatchSize,
  Curriculum,
  InitialWeights,
  LengthPenalty,
  TrainerTarget,
  TrainingRequest,
  type TrainingRequestInput,
} from "./training-request.ts";
export { StepMetrics, TrainerSecrets, TrainingView } from "./training-view.ts";
export { Outline, OutlineTurn, RolloutHead, ShownTurn, TurnPage, TurnTokenPage, WholeTurn } from "./turns.ts";
export { DatasetList, DatasetRow, DatasetView } from "./uploaded-dataset.ts";
export {
  BUCKET_WIDTHS,
  type BucketWidth,
  USAGE_GROUPS,
  USE_COUNTS,
  UsageBucket,
  type UsageGroup,
  UsagePage,
  UsageResult,
  type UseCount,
} from "./usage.ts";
export { SessionList, SessionRequest, SessionView, SignInCode } from "./web-session.ts";
