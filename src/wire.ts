/**
 * What a client imports from `rollcall/contract`: the schemas of requests, replies, events and rows, the types inferred
 * from them, and the allowed values of their fields. The server parses with the same schemas.
 */

export {
  AcceptedInvitation,
  AcceptRequest,
  type AcceptRequestInput,
  ApiKeyList,
  ApiKeyView,
  AuditEntry,
  AuditList,
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
  SessionList,
  SessionRequest,
  SessionView,
  SignInCode,
  WhoAmI,
} from "./accounts/wire.ts";
export {
  ADJUSTMENT_KINDS,
  AdjustmentRequest,
  BalanceView,
  BUCKET_WIDTHS,
  BUDGET_TARGETS,
  type BucketWidth,
  BudgetList,
  BudgetPatch,
  BudgetRequest,
  type BudgetTarget,
  BudgetView,
  CheckoutRequest,
  CheckoutView,
  LedgerVerification,
  PostedEntry,
  StatementList,
  StatementView,
  StripeReceipt,
  TopUpRequest,
  type TopUpRequestInput,
  USAGE_GROUPS,
  USE_COUNTS,
  UsageBucket,
  type UsageGroup,
  UsagePage,
  UsageResult,
  type UseCount,
} from "./billing/wire.ts";
export {
  AgreementItem,
  AgreementSummary,
  AgreementSummaryList,
  MARKS,
  type Mark,
  REVIEWED_KINDS,
  type ReviewedKind,
  RunAgreement,
} from "./contract/agreement.ts";
export { ApiError, ERROR_CODES, type ErrorCode, type ErrorDetails, STATUS_OF } from "./contract/api-error.ts";
export { AUDIT_RULES, type AuditRule, AuditViolation, ChargeAudit, RunAudit } from "./contract/audit.ts";
export { BatchFormat, type FormatQuery } from "./contract/batch-format.ts";
export { BATCH_SHA256_HEADER, CUT_ROWS_HEADER } from "./contract/batch-headers.ts";
export {
  type ComparedTask,
  CompareQuery,
  RunComparison,
  TaskComparison,
  TaskComparisonList,
} from "./contract/comparison.ts";
export {
  DatasetUploadEnd,
  DatasetUploadList,
  DatasetUploadPart,
  DatasetUploadProgress,
  DatasetUploadRequest,
  DatasetUploadView,
} from "./contract/dataset-upload.ts";
export {
  DELETION_KINDS,
  DELETION_STATES,
  type DeletionKind,
  DeletionList,
  DeletionView,
  OrganizationDeletion,
} from "./contract/deletion.ts";
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
} from "./contract/endpoint.ts";
export { EnvironmentResults, type ModelResults } from "./contract/environment-results.ts";
export {
  CANCEL_REASONS,
  type CancelReason,
  FAILURE_CLASSES,
  type FailureClass,
  type SerializedError,
  UNSCORED_CAUSES,
  type UnscoredCause,
} from "./contract/errors.ts";
export { EvalRequest, type EvalRequestInput, RunLimits } from "./contract/eval-request.ts";
export { EVENT_NAMES, type EventName } from "./contract/event-names.ts";
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
} from "./contract/export.ts";
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
} from "./contract/filter.ts";
export {
  FleetOrName,
  FleetUpdate,
  LOCATION_HINTS,
  ReplicaCapabilities,
  UPDATE_MODES,
  UpdateMode,
} from "./contract/fleet.ts";
export {
  DEFAULT_LIMITS,
  DEFAULT_RETENTION,
  OrganizationLimits,
  PERMISSIONS,
  Permission,
  Retention,
  ROLES,
  Role,
} from "./contract/identity.ts";
export type { Json, JsonObject } from "./contract/json.ts";
export { Cost, Judgement, JudgeTokens, JudgeUsage } from "./contract/judgement.ts";
export { LIMITS } from "./contract/limits.ts";
export {
  Content,
  type ContentPart,
  FinishReason,
  Message,
  Messages,
  ToolCall,
  type ToolDefinition,
  Usage,
} from "./contract/messages.ts";
export {
  BILLING_MODES,
  Billing,
  type BillingMode,
  CHARGE_LINES,
  type ChargeLine,
  type ChargeLines,
  CreditLimit,
  ENTRY_KINDS,
  type EntryKind,
  Fees,
  LedgerEntry,
  LedgerEntryList,
  ModelPrice,
  Month,
  PriceList,
  PriceListRequest,
  type PriceListRequestInput,
  PriceLists,
  PriceVersion,
} from "./contract/money.ts";
export { OUTBOUND_EVENTS, type OutboundEventName } from "./contract/outbound-event.ts";
export {
  GrantRequest,
  GrantView,
  PublishedVersion,
  PublishedVersionList,
  PublishedVersionPatch,
  TagRequest,
  TagView,
  TakeDownRequest,
  VISIBILITIES,
  Visibility,
} from "./contract/published-environment.ts";
export { RunReport } from "./contract/report.ts";
export { Resealed, ResealQuery, SEALED_KINDS, type SealedKind, UnopenedValue } from "./contract/reseal.ts";
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
} from "./contract/rollout-list.ts";
export { ReviewValue, RowReview, RowReviews } from "./contract/row-review.ts";
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
} from "./contract/run.ts";
export {
  ForkRequest,
  type ForkRequestInput,
  RETRY_CLASSES,
  RescoreRequest,
  type RescoreRequestInput,
  RetryRequest,
  RunPatch,
} from "./contract/run-control.ts";
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
} from "./contract/run-events.ts";
export { RunPreview } from "./contract/run-preview.ts";
export { Sampling } from "./contract/sampling.ts";
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
} from "./contract/trainer-wire.ts";
export {
  Advantage,
  BatchSize,
  Curriculum,
  InitialWeights,
  LengthPenalty,
  TrainerTarget,
  TrainingRequest,
  type TrainingRequestInput,
} from "./contract/training-request.ts";
export { StepMetrics, TrainerSecrets, TrainingView } from "./contract/training-view.ts";
export {
  JudgeQuestion,
  JudgeQuestionList,
  Outline,
  OutlineTurn,
  RolloutHead,
  ShownTurn,
  TurnPage,
  TurnTokenPage,
  WholeTurn,
} from "./contract/turns.ts";
export { DatasetList, DatasetRow, DatasetView } from "./contract/uploaded-dataset.ts";
export { ReviewList, ReviewRequest, type ReviewRequestInput, ReviewView } from "./reviews/wire.ts";
