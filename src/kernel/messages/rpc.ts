/**
 * What objects may ask of each other, as plain signatures: the contract across deploys, where arguments and results only
 * ever gain optional fields. The platform's own stub types are made by walking every argument's type, and JSON's has no
 * end; these are what the callers see instead, and the classes declare that they serve them.
 */
import type { CancelReason } from "../../contract/errors.ts";
import type { ExportQuery } from "../../contract/export.ts";
import type { FilterTerm } from "../../contract/filter.ts";
import type { StepMetrics } from "../../contract/training-view.ts";
import type { SqlOutcome, SqlPlace, SqlValue } from "../../core/environments/rollout-sql.ts";
import type { Rollout } from "../../core/rollout/rollout.ts";
import type { FailedTry, Grant, PermitAsk } from "./endpoint-wire.ts";
import type { ClaimSpending, JudgedAsk, JudgedReply, JudgementRequest, JudgingUnit } from "./judge-outcome.ts";
import type { Latencies } from "./latency.ts";
import type {
  BinCounts,
  BinsQuery,
  GroupRecord,
  GroupSlice,
  GroupSliceQuery,
  RolloutSlice,
  RolloutSliceQuery,
  SearchState,
  SearchTexts,
  Sliced,
  Spread,
  SpreadQuery,
} from "./list-wire.ts";
import type {
  KeyRange,
  LiveView,
  RolloutLeft,
  RolloutRecord,
  RunRecords,
  SegmentEntry,
  SegmentTrace,
  StoredEvent,
  TaskMean,
} from "./run-records.ts";
import type { GroupSamples, TrainerSnapshot } from "./training-wire.ts";
import type { TrajectoryRest, TurnSlice, TurnsAsk } from "./turn-wire.ts";
import type {
  AllowanceAsk,
  AllowanceReply,
  Delivery,
  RetryOrder,
  RetryRefusal,
  RolloutReport,
  RolloutSlot,
  RolloutSpec,
  RolloutStanding,
  RunMessage,
  RunSpec,
  ScoredMember,
  SourceSlot,
  Starter,
  SuspectKey,
  Unit,
} from "./wire.ts";

/** The same methods on the class: an answer that is there already need not be a promise. */
export type Serves<Rpc> = {
  [Name in keyof Rpc]: Rpc[Name] extends (...args: infer Args) => Promise<infer Answer>
    ? (...args: Args) => Answer | Promise<Answer>
    : never;
};

/** What may be asked about a run's rollouts as lists. */
export interface ListQuestions {
  readonly rollouts: { readonly ask: RolloutSliceQuery; readonly answer: RolloutSlice };
  /** How many pass the filter, of those dispatched as `slice` says. */
  readonly matches: {
    readonly ask: Sliced & { readonly terms: readonly FilterTerm[]; readonly slice: number };
    readonly answer: { readonly n: number; readonly slices: number };
  };
  readonly groups: { readonly ask: GroupSliceQuery; readonly answer: GroupSlice };
  /** Of one group; `found` is null where no rollout of it was dispatched. */
  readonly group: { readonly ask: number; readonly answer: { readonly found: GroupRecord | null } };
  readonly spread: { readonly ask: SpreadQuery; readonly answer: Spread };
  readonly bins: { readonly ask: BinsQuery; readonly answer: BinCounts };
  /** What a sample of rows holds on average, in characters: the texts that a filter searches, and the scores as JSON. */
  readonly rowSizes: { readonly ask: null; readonly answer: { readonly texts: number; readonly scores: number } };
  /** Names of scores that rollouts have, as far as a sample of them says. */
  readonly scoreNames: { readonly ask: null; readonly answer: readonly string[] };
  /** What the tasks of these rollouts ask, by their numbers; of those that are known. */
  readonly taskTexts: { readonly ask: readonly number[]; readonly answer: ReadonlyMap<number, string> };
  /** How far the texts are that a search looks in; asked with more of them, it keeps those first. */
  readonly searched: { readonly ask: SearchTexts | null; readonly answer: SearchState };
}
export type ListQuestion = keyof ListQuestions;
export type ListAsk<Name extends ListQuestion> = ListQuestions[Name]["ask"];
export type ListAnswer<Name extends ListQuestion> = ListQuestions[Name]["answer"];

export interface FinishedPage {
  readonly rows: RolloutRecord[];
  /** True when rows were left out for their size: they begin the next page. */
  readonly cut: boolean;
  /** Segments that cover rows of this page. */
  readonly segments: SegmentEntry[];
  /** Up to which end the books of the organisation have what is charged. */
  readonly settled?: number;
}

/** Lines of an export: each made of one rollout, or of the two of a pair. */
export interface ExportPage {
  readonly items: RolloutRecord[][];
  /** Segments that cover them. */
  readonly segments: SegmentEntry[];
  /** Where the next page begins; null after the last. */
  readonly next: string | null;
}

/** What rollouts left behind, for others that take it over. */
export interface SourcePage {
  /** In the order asked for; null where none was ever dispatched. */
  readonly records: (RolloutRecord | null)[];
  /** Segments that cover them. */
  readonly segments: SegmentEntry[];
  /** Why the run dispatched nothing more, where somebody cancelled it. */
  readonly cancelled: CancelReason | null;
}

/** `refused`: the report cannot be stored, whoever sends it again; something smaller is wanted in its place. */
export interface Answered {
  readonly known: boolean;
  readonly refused?: string;
}

/** Whose an object is: a project's, or (`projectId` null) the whole organisation's. */
export interface Owner {
  readonly orgId: string;
  readonly projectId: string | null;
}

/** How far the end of a run is that is deleted. */
export interface Closing {
  /** When nothing of it can be on its way any more, in epoch milliseconds; null while rollouts are in flight. */
  readonly quiet_at: number | null;
  /** Objects its rollouts were given to, numbered from 1. */
  readonly hosts: number;
}

/** Who grants a run what it may have at once. */
export type Grantor = "endpoint" | "account";

export interface RunRpc {
  /** Begins the run; a no-op after the first. */
  create(spec: RunSpec): Promise<void>;
  /** Which of these are still to be started, and how. Null, here and below: nobody created this run. */
  admit(places: readonly RolloutSlot[]): Promise<{ spec: RunSpec; admitted: Starter[] } | null>;
  /** Final reports of rollouts. Repeated, they change nothing. What came of each, in their order. */
  answered(reports: readonly RolloutReport[]): Promise<Answered[]>;
  /** Rollouts of a run with a cap ask for more, before calls that they could not pay. In their order. */
  allow(asks: readonly AllowanceAsk[]): Promise<AllowanceReply[]>;
  /** Members of the units that still wait for scores. `hold`: they are worked on, and not to be sent again by now. */
  unitsToScore(units: readonly number[], hold?: boolean): Promise<{ spec: RunSpec; units: Unit[] } | null>;
  /** The first complete record of a rollout wins. `samples`: what a training run's whole groups gave to train on. */
  scored(members: readonly ScoredMember[], samples?: readonly GroupSamples[], of?: ClaimSpending): Promise<void>;
  /** These units have no scores before judges have answered; or they are given back so. */
  requestJudgements(requests: readonly JudgementRequest[]): Promise<void>;
  /** The unit, for whoever asks its judges from now on; null when it is not to be taken, or somebody has it. */
  takeJudging(unit: number, by: Delivery): Promise<JudgingUnit | null>;
  /**
   * Names a suspect before it computes, in how many deaths it was the one that was named (suspects.ts). `died`: the process
   * before this `boot` did not end in order. Null: it is given up, and must not begin.
   */
  accuse(key: SuspectKey, boot: string, died: boolean): Promise<{ readonly deaths: number } | null>;
  /** It awaits the outside by now, or it has `ended`. */
  clear(key: SuspectKey, ended: boolean): Promise<void>;
  /** What came of asking. A verdict that is settled stays as it is, and a call counts once. Null: nobody created this run. */
  judged(unit: number, claim: number, asks: readonly JudgedAsk[]): Promise<JudgedReply | null>;
  /** Rows of a segment that is not folded yet. */
  segmentRows(segment: number): Promise<RolloutLeft[] | null>;
  folded(segment: number, key: string): Promise<void>;
  /** The same segment for a trace, folded or not. Null: nobody created this run, or it has no such segment. */
  segmentTrace(segment: number): Promise<(SegmentTrace & { readonly key: string | null }) | null>;
  /** What these left behind, for rollouts that take it over. */
  sources(places: readonly SourceSlot[]): Promise<SourcePage | null>;
  /** Ends the run early; what is in flight is told in slices and still reports. */
  cancel(): Promise<boolean>;
  /** Cancels it for good: nobody reads or changes it from here on. Repeated, it says how far its end is. */
  close(): Promise<Closing>;
  /** Frees the storage of a closed run. False: something of it is still under way. */
  free(): Promise<boolean>;
  /** Stops dispatch, or goes on with it; an ended run stays as it is. False: nobody created this run. */
  pause(paused: boolean): Promise<boolean>;
  setMaxConcurrent(rollouts: number): Promise<void>;
  /** Other attempts for rollouts without a score. A repeat of the order's key changes nothing. */
  retry(order: RetryOrder): Promise<RetryRefusal | null>;
  /** Holds of lost calls count against its cap no more. `entry`: of the audit log. False: nobody created this run. */
  releaseLostCalls(entry: number): Promise<boolean>;
  /** Asks one rollout to stop. False: there is none in this place. */
  cancelRollout(place: RolloutSlot): Promise<boolean>;
  /** Its endpoint would grant it something else now; or whoever else it is. */
  endpointChanged(by?: Grantor): Promise<void>;
  /** What the run's own records say, all of one moment. */
  auditRecords(): Promise<RunRecords | null>;
  /** The next 1,000 finished rollouts after this end, without their trajectories. */
  view(): Promise<LiveView | null>;
  /** The trainer's object has news: what is later than what is known here is taken over. */
  trainerChanged(snapshot: TrainerSnapshot): Promise<{ readonly acked_step: number }>;
  /** The series of a training run, of steps after this one. */
  stepMetrics(after: number, limit: number): Promise<StepMetrics[] | null>;
  /** Tasks with a scored rollout, by key. Null: nobody created this run. */
  taskMeans(metric: string | null, range: KeyRange): Promise<TaskMean[] | null>;
  rollout(place: RolloutSlot): Promise<RolloutRecord | null>;
  /** A question about its rollouts as lists. Null: nobody created this run. */
  look<Name extends ListQuestion>(question: Name, ask: ListAsk<Name>): Promise<ListAnswer<Name> | null>;
  /** The segment that covers a finished rollout, once one does. */
  segmentOf(finishSeq: number): Promise<SegmentEntry | null>;
  /** Finished rollouts in the order they ended. */
  finished(after: number, limit: number, outcome: string | null): Promise<FinishedPage | null>;
  /** The next rollouts to export. Null: nobody created this run. */
  exportPage(query: ExportQuery): Promise<ExportPage | null>;
  /** Events after `after`; waits for the next ones when there are none yet. */
  events(after: number, waitMs: number): Promise<{ events: StoredEvent[]; ended: boolean } | null>;
  /** A message of this run that its queue gave up on. */
  deadLetter(queue: string, message: RunMessage): Promise<void>;
}

export interface EndpointRpc {
  /** What a run may do on the endpoint until it asks again, or its lease ends. */
  ask(asked: PermitAsk): Promise<Grant>;
  /** A call failed and is about to be tried again: when to ask anew instead, while the endpoint is down; else null. */
  failing(call: FailedTry): Promise<{ readonly again_at: number | null }>;
  /** Its settings, its address or its key are not what they were. */
  changed(): Promise<void>;
  /** How long its calls took, as far as runs have told of them. Null: nobody did so lately. */
  latencies(): Promise<Latencies | null>;
}

/** A rollout that is asked to stop, and why. */
export interface StopOrder {
  readonly rollout_id: string;
  readonly reason: CancelReason;
}

/** The object that plays up to `LIMITS.rolloutsPerHost` rollouts of a run at a time. It knows them by their ids. */
export interface RolloutRpc {
  /** Begins the rollouts, each once; repeated, says how they stand. A start sent too long ago begins nothing. */
  start(specs: readonly RolloutSpec[], sentAt: number): Promise<RolloutStanding[]>;
  /** How they stand, in the order asked for; wakes those that should be running and are not. */
  ask(ids: readonly string[]): Promise<RolloutStanding[]>;
  cancel(orders: readonly StopOrder[]): Promise<RolloutStanding[]>;
  /**
   * There may be enough for the calls that these wait to pay for: they ask again. `first`: there may not be, and they make no
   * other call before they have asked.
   */
  askAgain(ids: readonly string[], first?: boolean): Promise<void>;
  /** The rollout as stored so far, or null when there is none. */
  read(id: string): Promise<Rollout | null>;
  /** Of its turns stored so far those that are asked for, as its trajectory will have them. */
  turns(id: string, ask: TurnsAsk): Promise<TurnSlice | null>;
  /** What its trajectory would say now, without its turns and long texts. */
  rest(id: string): Promise<(TrajectoryRest & Pick<Rollout, "initial_state">) | null>;
  /** Frees the storage once all reports were acknowledged. False: a report is still to be. */
  free(): Promise<boolean>;
}

export interface SqlCaller {
  /** Whose turn in the process the call waits for. */
  readonly org: string;
  /** How often the rollout was written before. */
  readonly writes: number;
}
export interface SqlAnswer {
  /** What is wrong with the call comes back as a value. */
  readonly outcome: SqlOutcome;
  /** Milliseconds for which the call waited for its organisation's turn. */
  readonly waited_ms: number;
}

export interface RolloutSqlRpc {
  /** One call of a hook. Those of one rollout are run in the order in which they come. */
  exec(caller: SqlCaller, place: SqlPlace, query: string, params: readonly SqlValue[]): Promise<SqlAnswer>;
}
