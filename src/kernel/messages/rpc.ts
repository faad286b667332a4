/**
 * The methods that objects call on each other, as plain signatures. This is the contract across deploys: arguments and
 * results only ever gain optional fields. The platform derives its own stub types by walking every argument's type, and
 * the type of JSON is recursive. So callers use these types instead, and the classes declare that they implement them.
 */
import type { CancelReason } from "../../contract/errors.ts";
import type { ExportQuery } from "../../contract/export.ts";
import type { RunCounts, RunStatus } from "../../contract/run.ts";
import type { StepMetrics } from "../../contract/training-view.ts";
import type { SqlOutcome, SqlPlace, SqlValue } from "../../core/environments/rollout-sql.ts";
import type { Rollout } from "../../core/rollout/rollout.ts";
import type { AgentCall, AgentFinish, AgentReply, FinishReply, TakenRollout, TakeOrder } from "./agent-wire.ts";
import type { FailedTry, GrantedLease, LeaseAsk } from "./endpoint-wire.ts";
import type { ClaimSpending, JudgedAsk, JudgedReply, JudgementRequest, JudgingScoringGroup } from "./judge-outcome.ts";
import type { Latencies } from "./latency.ts";
import type {
  BinCounts,
  BinsQuery,
  GroupRecord,
  GroupSlice,
  GroupSliceQuery,
  RolloutSlice,
  RolloutSliceQuery,
  RowTerm,
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
  BudgetReply,
  Delivery,
  QuarantineKey,
  RetryOrder,
  RetryRefusal,
  RolloutBudgetAsk,
  RolloutReport,
  RolloutSlot,
  RolloutSpec,
  RolloutStanding,
  RunMessage,
  RunSpec,
  ScoredMember,
  ScoringGroup,
  SourceSlot,
  Starter,
  UnspentBudget,
} from "./wire.ts";

/** The same methods on the class: a result that is available at once need not be a promise. */
export type Serves<Rpc> = {
  [Name in keyof Rpc]: Rpc[Name] extends (...args: infer Args) => Promise<infer Answer>
    ? (...args: Args) => Answer | Promise<Answer>
    : never;
};

/** The queries about a run's rollouts as lists. */
export interface ListQuestions {
  readonly rollouts: { readonly ask: RolloutSliceQuery; readonly answer: RolloutSlice };
  /** How many pass the filter, of those that were dispatched in the given slice. */
  readonly matches: {
    readonly ask: Sliced & { readonly terms: readonly RowTerm[]; readonly slice: number };
    readonly answer: { readonly n: number; readonly slices: number };
  };
  readonly groups: { readonly ask: GroupSliceQuery; readonly answer: GroupSlice };
  /** One group; `found` is null if no rollout of it was dispatched. */
  readonly group: { readonly ask: number; readonly answer: { readonly found: GroupRecord | null } };
  readonly spread: { readonly ask: SpreadQuery; readonly answer: Spread };
  readonly bins: { readonly ask: BinsQuery; readonly answer: BinCounts };
  /** Average size of a sample of rows, in characters: the texts that a filter searches, and the scores as JSON. */
  readonly rowSizes: { readonly ask: null; readonly answer: { readonly texts: number; readonly scores: number } };
  /** Names of scores that rollouts have, taken from a sample of them. */
  readonly scoreNames: { readonly ask: null; readonly answer: readonly string[] };
  /** The task texts of these rollouts, by number, as far as they are known. */
  readonly taskTexts: { readonly ask: readonly number[]; readonly answer: ReadonlyMap<number, string> };
  /** How far the stored search texts reach. If the query has texts, they are stored first. */
  readonly searched: { readonly ask: SearchTexts | null; readonly answer: SearchState };
}
export type ListQuestion = keyof ListQuestions;
export type ListAsk<Name extends ListQuestion> = ListQuestions[Name]["ask"];
export type ListAnswer<Name extends ListQuestion> = ListQuestions[Name]["answer"];

export interface FinishedPage {
  readonly rows: RolloutRecord[];
  /** True if rows were left out for their size: the next page begins with them. */
  readonly cut: boolean;
  /** Segments that cover rows of this page. */
  readonly segments: SegmentEntry[];
  /** Charges up to this end are in the organisation's ledger. */
  readonly settled?: number;
}

/** Lines of an export: each is made of one rollout, or of the two rollouts of a pair. */
export interface ExportPage {
  readonly items: RolloutRecord[][];
  /** Segments that cover them. */
  readonly segments: SegmentEntry[];
  /** Where the next page begins; null after the last. */
  readonly next: string | null;
}

/** Trajectories of rollouts, for other rollouts that take them over. */
export interface SourcePage {
  /** In the order of the request; null for a place whose rollout was never dispatched. */
  readonly records: (RolloutRecord | null)[];
  /** Segments that cover them. */
  readonly segments: SegmentEntry[];
  /** Why the run stopped dispatching, if it was cancelled. */
  readonly cancelled: CancelReason | null;
}

/** `refused`: the report cannot be stored, and sending it again will not help. The caller must send a smaller one. */
export interface Answered {
  readonly known: boolean;
  readonly refused?: string;
}

/** The owner of an object: a project, or (if `projectId` is null) the whole organisation. */
export interface Owner {
  readonly orgId: string;
  readonly projectId: string | null;
}

/** How far the deletion of a run has got. */
export interface Closing {
  /** When no message of it can still be under way, in epoch milliseconds; null while rollouts are in flight. */
  readonly quiet_at: number | null;
  /** How many shards played its rollouts; they are numbered from 1. */
  readonly hosts: number;
}

/** What the row of a run in D1 says about its state. `finished_at`: epoch milliseconds. */
export interface StoredStanding {
  readonly status: RunStatus;
  readonly counts: RunCounts | null;
  readonly dead_letters: number;
  readonly stored_bytes: number;
  readonly finished_at: number | null;
}

/** The object that grants leases to a run. */
export type LeaseIssuer = "endpoint" | "account";

export interface RunRpc {
  /** Creates the run; does nothing after the first call. */
  create(spec: RunSpec): Promise<void>;
  /** Does what is due, in case that its alarm was lost. */
  wake(): Promise<void>;
  /** Which of these must still be started, and how. Null, here and below: the run does not exist. */
  admit(places: readonly RolloutSlot[]): Promise<{ spec: RunSpec; admitted: Starter[] } | null>;
  /** Final reports of rollouts. A repeated report changes nothing. One answer for each report, in order. */
  answered(reports: readonly RolloutReport[]): Promise<Answered[]>;
  /**
   * Rollouts of a run with a cap request more budget, before calls that exceed what they have. Answers are in order.
   */
  allow(asks: readonly RolloutBudgetAsk[]): Promise<BudgetReply[]>;
  /**
   * Members of the scoring groups that still wait for scores. `hold`: the caller works on them, so do not send them
   * again.
   */
  scoringGroupsToScore(
    scoringGroups: readonly number[],
    hold?: boolean,
    putOff?: boolean,
  ): Promise<{ spec: RunSpec; units: ScoringGroup[] } | null>;
  /** The first complete record of a rollout wins. `samples`: training samples from whole groups of a training run. */
  scored(members: readonly ScoredMember[], samples?: readonly GroupSamples[], of?: ClaimSpending): Promise<void>;
  /** These scoring groups need judgements before they can be scored; or they are given back for that. */
  requestJudgements(requests: readonly JudgementRequest[]): Promise<void>;
  /** Claims the scoring group for the caller, which then calls its judges; null if it cannot be claimed. */
  takeJudging(scoringGroup: number, by: Delivery): Promise<JudgingScoringGroup | null>;
  /**
   * Records quarantined work before it starts, and returns in how many process deaths it was the recorded work
   * (quarantine.ts). `died`: the process before this `boot` did not end normally. Null: the work is given up and must not
   * start.
   */
  admitToQuarantine(key: QuarantineKey, boot: string, died: boolean): Promise<{ readonly deaths: number } | null>;
  /** The work now waits for an outside call, or it has `ended`. */
  clear(key: QuarantineKey, ended: boolean): Promise<void>;
  /** Outcomes of judge calls. A settled judgement stays, and a call counts once. Null: the run does not exist. */
  judged(scoringGroup: number, claim: number, asks: readonly JudgedAsk[]): Promise<JudgedReply | null>;
  /** Rows of a segment that is not compacted yet. */
  segmentRows(segment: number): Promise<RolloutLeft[] | null>;
  folded(segment: number, key: string): Promise<void>;
  /** The same segment for a trace, compacted or not. Null: the run does not exist, or it has no such segment. */
  segmentTrace(segment: number): Promise<(SegmentTrace & { readonly key: string | null }) | null>;
  /** The trajectories of these rollouts, for rollouts that take them over. */
  sources(places: readonly SourceSlot[]): Promise<SourcePage | null>;
  /** Ends the run early. Rollouts in flight are notified in slices and still report. */
  cancel(): Promise<boolean>;
  /** Cancels the run for good: it is no longer read or changed. Repeated calls return how far its end is. */
  close(): Promise<Closing>;
  /** Frees the storage of a closed run. False: some of its work is still running. */
  free(): Promise<boolean>;
  /** Pauses or resumes dispatch; an ended run is unchanged. False: the run does not exist. */
  pause(paused: boolean): Promise<boolean>;
  setMaxConcurrent(rollouts: number): Promise<void>;
  /** Starts new attempts for rollouts without a score. Repeating the order's key changes nothing. */
  retry(order: RetryOrder): Promise<RetryRefusal | null>;
  /**
   * Reservations of lost calls no longer count against the cap. `entry`: in the audit log. False: the run does not
   * exist.
   */
  releaseLostCalls(entry: number): Promise<boolean>;
  /** Stops one rollout. False: there is none in this place. */
  cancelRollout(place: RolloutSlot): Promise<boolean>;
  /** The lease from the endpoint's object, or from another grantor, would now differ: the run asks again. */
  endpointChanged(by?: LeaseIssuer): Promise<void>;
  /** What the run's own records contain, all at one moment. */
  auditRecords(): Promise<RunRecords | null>;
  /** The current state of the run. Null: the run does not exist. */
  view(): Promise<LiveView | null>;
  /** How many rollouts are played or scored just now; 0 for a run that does not exist. */
  underWay(): Promise<number>;
  /**
   * Writes the run's row in D1 again, unless the row is as `stored`. `stored` null: in any case. Null: the run does not
   * exist.
   */
  rewriteRow(stored: StoredStanding | null): Promise<"same" | "written" | null>;
  /** The trainer's object has changed: anything newer than the run's copy is taken over. */
  trainerChanged(snapshot: TrainerSnapshot): Promise<{ readonly acked_step: number }>;
  /** The metrics of a training run, for steps after this one. */
  stepMetrics(after: number, limit: number): Promise<StepMetrics[] | null>;
  /** Tasks with a scored rollout, by key. Null: the run does not exist. */
  taskMeans(metric: string | null, range: KeyRange): Promise<TaskMean[] | null>;
  rollout(place: RolloutSlot): Promise<RolloutRecord | null>;
  /** A query about its rollouts as lists. Null: the run does not exist. */
  look<Name extends ListQuestion>(question: Name, ask: ListAsk<Name>): Promise<ListAnswer<Name> | null>;
  /** The segment that covers a finished rollout, if there is one yet. */
  segmentOf(finishSeq: number): Promise<SegmentEntry | null>;
  /** Finished rollouts in the order of their ends, without their judgements. `judged`: with them, as `JudgeCalls`. */
  finished(after: number, limit: number, outcome: string | null, judged?: boolean): Promise<FinishedPage | null>;
  /** The next rollouts to export. Null: the run does not exist. */
  exportPage(query: ExportQuery): Promise<ExportPage | null>;
  /** Events after `after`. If there are none yet, it waits up to `waitMs`. */
  events(after: number, waitMs: number): Promise<{ events: StoredEvent[]; ended: boolean } | null>;
  /** A message of this run that reached the dead-letter queue. */
  deadLetter(queue: string, message: RunMessage): Promise<void>;
}

export interface EndpointRpc {
  /** What a run may do on the endpoint until it asks again or its lease ends. */
  ask(asked: LeaseAsk): Promise<GrantedLease>;
  /**
   * A call failed and is about to be retried. Returns when to retry instead if the endpoint is down; otherwise null.
   */
  failing(call: FailedTry): Promise<{ readonly again_at: number | null }>;
  /** The endpoint's settings, address or key have changed. */
  changed(): Promise<void>;
  /** How long its calls took, as far as runs have reported it. Null: there is no recent report. */
  latencies(): Promise<Latencies | null>;
}

/** A rollout that must stop, and why. */
export interface StopOrder {
  readonly rollout_id: string;
  readonly reason: CancelReason;
}

/** A shard: an object that plays up to `LIMITS.rolloutsPerShard` rollouts of a run at a time. It finds them by id. */
export interface RolloutRpc {
  /** Starts the rollouts, each once, and returns their states. A start that was sent too long ago does nothing. */
  start(specs: readonly RolloutSpec[], sentAt: number): Promise<RolloutStanding[]>;
  /** Their states, in the order of the request. Wakes those that should be running and are not. */
  ask(ids: readonly string[]): Promise<RolloutStanding[]>;
  cancel(orders: readonly StopOrder[]): Promise<RolloutStanding[]>;
  /**
   * There may now be enough budget for the calls that these rollouts wait for: they ask again. `first`: there may not
   * be enough, and they make no other call before they have asked.
   */
  askAgain(ids: readonly string[], first?: boolean): Promise<void>;
  /**
   * Rollouts of agents give back the budget that they do not use, in the order of the request. Null for a rollout that
   * has a call in flight, or is about to end.
   */
  giveBack(ids: readonly string[]): Promise<(UnspentBudget | null)[]>;
  /** The rollout as stored so far, or null if there is none. */
  read(id: string): Promise<Rollout | null>;
  /** The requested turns of those stored so far, in the form of a trajectory. */
  turns(id: string, ask: TurnsAsk): Promise<TurnSlice | null>;
  /** What its trajectory would contain now, without turns and long texts. */
  rest(id: string): Promise<(TrajectoryRest & Pick<Rollout, "initial_state">) | null>;
  /** Frees the storage once all reports were acknowledged. False: a report is still pending. */
  free(): Promise<boolean>;
  /** Leases rollouts to a worker, in the order of the request; null for a rollout that no worker can play now. */
  takeForAgent(orders: readonly TakeOrder[]): Promise<(TakenRollout | null)[]>;
  /** A model call of an agent. Returns once the answer is on disk. A repeated call gets the stored answer. */
  callForAgent(id: string, lease: number, call: AgentCall): Promise<AgentReply>;
  /** The name of its model; null once it has ended. */
  modelForAgent(id: string): Promise<string | null>;
  /** Ends a rollout. A repeat with the same `finish` gets the same answer. */
  finishForAgent(id: string, lease: number, finish: AgentFinish): Promise<FinishReply>;
  /**
   * The worker with this lease no longer plays the rollout. `isLost`: it was silent for too long; otherwise it gave the
   * lease back. False: no worker will play the rollout again.
   */
  lapseForAgent(id: string, lease: number, isLost: boolean): Promise<boolean>;
}

export interface SqlCaller {
  /** The organisation whose scheduling turn the call waits for. */
  readonly org: string;
  /** How often the rollout was written before. */
  readonly writes: number;
}
export interface SqlAnswer {
  /** A fault of the call comes back as a value. */
  readonly outcome: SqlOutcome;
  /** Milliseconds for which the call waited for its organisation's scheduling turn. */
  readonly waited_ms: number;
}

export interface RolloutSqlRpc {
  /** One call of a hook. Calls of one rollout run in the order of their arrival. */
  exec(caller: SqlCaller, place: SqlPlace, query: string, params: readonly SqlValue[]): Promise<SqlAnswer>;
}
