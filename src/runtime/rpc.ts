/**
 * What objects may ask of each other, as plain signatures: the contract across deploys, where arguments and results only
 * ever gain optional fields. The platform's own stub types are made by walking every argument's type, and JSON's has no
 * end; these are what the callers see instead, and the classes declare that they serve them.
 */
import type { CancelReason } from "../core/errors.ts";
import type { Rollout } from "../core/rollout.ts";
import type { TurnOutcome } from "./call-outcome.ts";
import type { PendingCall } from "./endpoint-call.ts";
import type { Grant, PermitAsk } from "./endpoint-ledger.ts";
import type { AuditRow, RunRecords } from "./run-records.ts";
import type { LiveView } from "./run-report.ts";
import type { RolloutRecord, SegmentEntry } from "./run-schema.ts";
import type { StoredEvent } from "./run-store.ts";
import type {
  Delivery,
  Place,
  RetryOrder,
  RetryRefusal,
  RolloutReport,
  RolloutSpec,
  RolloutStanding,
  RunMessage,
  RunSpec,
  ScoredMember,
  Starter,
  Unit,
} from "./wire.ts";

/** The same methods on the class: an answer that is there already need not be a promise. */
export type Serves<Rpc> = {
  [Name in keyof Rpc]: Rpc[Name] extends (...args: infer Args) => Promise<infer Answer>
    ? (...args: Args) => Answer | Promise<Answer>
    : never;
};

export interface FinishedPage {
  readonly rows: RolloutRecord[];
  /** True when rows were left out for their size: they begin the next page. */
  readonly cut: boolean;
  /** Segments that cover rows of this page. */
  readonly segments: SegmentEntry[];
}

export interface RunRpc {
  /** Begins the run; a no-op after the first. */
  create(spec: RunSpec): Promise<void>;
  /** Which of these are still to be started, and how. Null, here and below: nobody created this run. */
  admit(places: readonly Place[]): Promise<{ spec: RunSpec; admitted: Starter[] } | null>;
  /** A rollout's final report. Repeated, it changes nothing. */
  answered(report: RolloutReport): Promise<{ known: boolean }>;
  /** Members of the units that still wait for scores. */
  unitsToScore(units: readonly number[]): Promise<{ spec: RunSpec; units: Unit[] } | null>;
  /** The first complete record of a rollout wins. */
  scored(members: readonly ScoredMember[]): Promise<void>;
  /** Rows of a segment that is not folded yet. */
  segmentRows(segment: number): Promise<RolloutRecord[] | null>;
  folded(segment: number, key: string): Promise<void>;
  /** Ends the run early; what is in flight is told in slices and still reports. */
  cancel(): Promise<boolean>;
  /** Stops dispatch, or goes on with it; an ended run stays as it is. */
  pause(paused: boolean): Promise<void>;
  setMaxConcurrent(rollouts: number): Promise<void>;
  /** Other attempts for rollouts without a score. A repeat of the order's key changes nothing. */
  retry(order: RetryOrder): Promise<RetryRefusal | null>;
  /** Asks one rollout to stop. False: there is none in this place. */
  cancelRollout(place: Place): Promise<boolean>;
  /** Its endpoint would grant it something else now. */
  endpointChanged(): Promise<void>;
  /** What the run's own records say, all of one moment. */
  auditRecords(): Promise<RunRecords | null>;
  /** The next 1,000 finished rollouts after this end, without their trajectories. */
  auditRows(after: number): Promise<AuditRow[]>;
  view(): Promise<LiveView | null>;
  rollout(place: Place): Promise<RolloutRecord | null>;
  /** The segment that covers a finished rollout, once one does. */
  segmentOf(finishSeq: number): Promise<SegmentEntry | null>;
  /** Finished rollouts in the order they ended. */
  finished(after: number, limit: number, outcome: string | null): Promise<FinishedPage | null>;
  /** Events after `after`; waits for the next ones when there are none yet. */
  events(after: number, waitMs: number): Promise<{ events: StoredEvent[]; ended: boolean } | null>;
  /** A message of this run that its queue gave up on. */
  deadLetter(queue: string, message: RunMessage): Promise<void>;
}

export interface EndpointRpc {
  /** What a run may do on the endpoint until it asks again, or its lease ends. */
  ask(asked: PermitAsk): Promise<Grant>;
  /** Its settings, its address or its key are not what they were. */
  changed(): Promise<void>;
}

export interface RolloutRpc {
  /** Begins the rollout, once; repeated, says how it stands. A start sent too long ago begins nothing. */
  start(spec: RolloutSpec, sentAt: number): Promise<RolloutStanding>;
  /** How it stands; wakes it when it should be running and is not. */
  ask(): Promise<RolloutStanding>;
  cancel(reason: CancelReason): Promise<RolloutStanding>;
  /** The call to be made for it; null when it waits for that one no longer, or another delivery makes it. */
  pendingCall(turn: number, call: number, delivery?: Delivery): Promise<PendingCall | null>;
  /** What came of the call. The first answer to the call it waits for counts; any other changes nothing. */
  modelAnswered(turn: number, call: number, outcome: TurnOutcome): Promise<void>;
  /** The rollout as stored so far, or null when there is none. */
  read(): Promise<Rollout | null>;
  /** Frees the storage of a rollout whose report was acknowledged. False: it still owes its report. */
  free(): Promise<boolean>;
}
