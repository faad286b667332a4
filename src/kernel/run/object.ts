/**
 * The Durable Object of one run: the accounting of its rollouts, and the alarm that keeps them moving.
 *
 * Invariants. A rollout calls it at most three times. Turns do not call it, except in a run with a cap: there about
 * every fourth turn requests more money. A judgement consumer calls it once for each result, and once for each check
 * whether the scoring group is still wanted. A run with very many rollouts at once gets these calls merged by gatherers
 * (`gathered`). Input is on disk before it is acknowledged. Messages are sent after that,
 * and reconciliation sends again what a kill lost. A fresh instance asks every rollout in flight once. A call that only
 * changes rows is answered at once; its consequences follow in a tick (`ticks.ts`).
 */

import type { ExportQuery } from "../../contract/export.ts";
import { isAtRest, untilTheNextBoot } from "../kit/at-rest.ts";
import { isolateMemory } from "../kit/isolate-memory.ts";
import { StoredObject } from "../kit/stored-object.ts";
import { Subrequests } from "../kit/subrequests.ts";
import type { GatheredCall, GatheredReply, GatheringRpc } from "../messages/gathered.ts";
import type { ClaimSpending, JudgedAsk, JudgementRequest } from "../messages/judge-outcome.ts";
import type { Answered, LeaseIssuer, ListAsk, ListQuestion, RunRpc, Serves, StoredStanding } from "../messages/rpc.ts";
import type { KeyRange } from "../messages/run-records.ts";
import type { GroupSamples, TrainerSnapshot } from "../messages/training-wire.ts";
import type {
  Delivery,
  QuarantineKey,
  RetryOrder,
  RetryRefusal,
  RolloutReport,
  RolloutSlot,
  RunMessage,
  RunSpec,
  ScoredMember,
  SourceSlot,
} from "../messages/wire.ts";
import { answerAll, fold, requestCancel } from "./accounting.ts";
import { takeAsks } from "./cap.ts";
import { RunClosing } from "./closing.ts";
import { cancelOne, noteDeadLetter, retry, setMaxConcurrent, setPaused } from "./control.ts";
import { copyNeedsOf, correctCopiedRun } from "./copying.ts";
import { Dispatcher } from "./dispatcher.ts";
import { exportPage } from "./export-page.ts";
import { RunHousekeeping } from "./housekeeping.ts";
import { chargeEnd } from "./judging/charge-end.ts";
import { RunJudging } from "./judging/judging.ts";
import { endClaim, requestJudgements, takeJudgements, takeScoringGroup } from "./judging/scoring-group-state.ts";
import { RunLeases } from "./leases.ts";
import { lookAt } from "./lists/look.ts";
import { eventsAfter, finishedPage, rolloutRecord, uncompactedRows, WaitingReaders } from "./pages.ts";
import { RunQuarantine } from "./quarantine.ts";
import { Reclaims } from "./reclaims.ts";
import { recordsOf } from "./records.ts";
import { releaseLostCalls } from "./releases.ts";
import { LiveViews } from "./report.ts";
import { taskMeans } from "./report-sums.ts";
import { holdScoringGroups, rolloutsUnderWay, scoringGroupsWaiting } from "./scoring-groups.ts";
import { segmentOf, sourcesIn, startersIn, traceOf } from "./sources.ts";
import { type AccountingHooks, RunStore } from "./store.ts";
import { takeGathered } from "./take-gathered.ts";
import { takeScores } from "./take-scores.ts";
import { RunTicks } from "./ticks.ts";
import type { AcceptEval } from "./training/evals.ts";
import { closeGroup } from "./training/groups.ts";
import { TrainingLoop } from "./training/loop.ts";
import { GroupOpenings } from "./training/plan.ts";
import { stepsOf, trainingRecords, trainingStatusReason, trainingView } from "./training/view.ts";

/** How judging, prices and training extend the accounting of ended rollouts. */
export const ACCOUNTING_HOOKS: AccountingHooks = { onEnded: chargeEnd, onGroupEnded: closeGroup };

export abstract class RunObject extends StoredObject implements Serves<RunRpc & GatheringRpc> {
  /** Starts an eval of a training run. The module that assembles the whole platform implements it. */
  protected abstract readonly acceptEval: AcceptEval;
  /** The clock, replaced by tests. */
  now: () => number = () => Date.now();
  readonly #store: RunStore;
  readonly #memory = isolateMemory(this.env);
  readonly #dispatcher: Dispatcher;
  readonly #leases: RunLeases;
  readonly #judging: RunJudging;
  readonly #training: TrainingLoop;
  readonly #views: LiveViews;
  readonly #housekeeping: RunHousekeeping;
  readonly #quarantine: RunQuarantine;
  readonly #closing: RunClosing;
  readonly #ticks: RunTicks;
  #asked = false;
  readonly #readers = new WaitingReaders();

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    const now = () => this.now();
    this.#store = new RunStore(ctx.storage, ACCOUNTING_HOOKS);
    this.#leases = new RunLeases(env, this.#store, now);
    this.#dispatcher = new Dispatcher(env, this.#store, now, new GroupOpenings(this.#store), this.#leases);
    this.#judging = new RunJudging(env, this.#store, now, this.#leases);
    this.#training = new TrainingLoop(env, this.#store, now, {
      toScore: (scoringGroup) => this.#dispatcher.toScore(scoringGroup),
      acceptEval: (...asked) => this.acceptEval(...asked),
    });
    this.#views = new LiveViews(this.#store, now, {
      hindrance: (spec) => this.#dispatcher.hindrance(spec),
      judgeStatusReason: (spec) => this.#judging.statusReason(spec),
      trainingStatusReason: (spec) => trainingStatusReason(this.#store, spec),
      training: (spec) => trainingView(this.#store, spec),
    });
    this.#housekeeping = new RunHousekeeping(env, this.#store, this.#views, now);
    this.#quarantine = new RunQuarantine(env, this.#store);
    this.#closing = new RunClosing(ctx.storage, this.#store, this.#leases.settling);
    const [housekeeping, dispatcher, leases, judging] = [
      this.#housekeeping,
      this.#dispatcher,
      this.#leases,
      this.#judging,
    ];
    const parts = {
      ...{ housekeeping, dispatcher, leases, judging, training: this.#training, closing: this.#closing },
      reclaims: new Reclaims(env, this.#store, now),
    };
    this.#ticks = new RunTicks(ctx, this.#store, now, {
      ...parts,
      onDispatched: (spec) => {
        this.#views.noteProgress(spec);
        this.#readers.wake();
      },
    });
  }

  async create(spec: RunSpec): Promise<void> {
    if (this.#store.spec() !== null || this.#closing.isFreed) return;
    this.#store.create(spec);
    this.#asked = true;
    // In the same write: if the process dies while the endpoint is called, an alarm must exist.
    await this.#ticks.arm(spec);
    await this.#ticks.play(spec);
  }

  async admit(places: readonly RolloutSlot[]) {
    return this.#admit(places, await this.#quarantineUpTo());
  }

  #admit(places: readonly RolloutSlot[], quarantineUpTo: number) {
    const spec = this.#readable();
    if (spec === null) return null;
    if (this.#dispatcher.started(places)) this.#ticks.soon(spec);
    return { spec, admitted: startersIn(this.#store, spec, places, quarantineUpTo) };
  }

  answered(reports: readonly RolloutReport[]): Answered[] {
    const spec = this.#open();
    if (spec === null) return reports.map(() => ({ known: false }));
    const taken = answerAll(this.#store, spec, reports, this.now());
    for (const { unit: scoringGroup = null } of taken) this.#dispatcher.toScore(scoringGroup);
    this.#ticks.soon(spec);
    return taken.map(({ unit: _, ...answered }) => answered);
  }

  allow(asks: Parameters<RunRpc["allow"]>[0]) {
    // A rollout that waits may have been the last one that was making progress.
    return takeAsks(this.#store, this.#open(), asks, (spec) => this.#ticks.soon(spec));
  }

  async scoringGroupsToScore(asked: readonly number[], hold = false, putOff = false) {
    return this.#scoringGroupsToScore({ asked, hold, putOff }, await this.#quarantineUpTo());
  }

  #scoringGroupsToScore(
    { asked, hold, putOff }: { readonly asked: readonly number[]; readonly hold: boolean; readonly putOff: boolean },
    quarantineUpTo: number,
  ) {
    const spec = this.#open();
    if (spec === null) return null;
    const most = this.#memory.scoringCharacters;
    const scoringGroups = scoringGroupsWaiting(this.#store, spec, asked, quarantineUpTo, most);
    if (hold) holdScoringGroups(this.#store, spec, asked, { now: this.now(), putOff });
    return { spec, units: scoringGroups };
  }

  scored(members: readonly ScoredMember[], samples?: readonly GroupSamples[], of?: ClaimSpending): void {
    this.#change((spec) => {
      if (of !== undefined) endClaim(this.#store, of);
      takeScores(this.#store, spec, members, this.now(), samples);
    });
  }

  requestJudgements(requests: readonly JudgementRequest[]): void {
    this.#change((spec) => requestJudgements(this.#store, spec, requests, this.now()));
  }

  async takeJudging(scoringGroup: number, by: Delivery) {
    return this.#takeJudging(scoringGroup, by, await this.#quarantineUpTo());
  }

  #takeJudging(scoringGroup: number, by: Delivery, quarantineUpTo: number) {
    const spec = this.#open();
    if (spec === null) return null;
    const taken = takeScoringGroup(this.#store, spec, { unit: scoringGroup, by }, this.now(), quarantineUpTo);
    // The scoring group may have to move to another queue.
    if (taken === null) this.#ticks.soon(spec);
    return taken;
  }

  admitToQuarantine(key: QuarantineKey, boot: string, died: boolean) {
    const spec = this.#open();
    if (spec === null) return null;
    const admission = this.#quarantine.admitToQuarantine(spec, key, { boot, died }, this.now());
    if (admission === null) this.#ticks.soon(spec);
    return admission;
  }

  clear(key: QuarantineKey, ended: boolean): void {
    if (this.#open() !== null) this.#quarantine.clear(key, ended);
  }

  judged(scoringGroup: number, claim: number, asks: readonly JudgedAsk[]) {
    const spec = this.#open();
    if (spec === null) return null;
    const reply = takeJudgements(this.#store, spec, { unit: scoringGroup, claim }, asks, this.now());
    // A check changes nothing that others wait for, unless it ended the scoring group.
    if (asks.length > 0 || reply.over) this.#ticks.soon(spec);
    return reply;
  }

  async gathered(calls: readonly GatheredCall[]): Promise<GatheredReply[]> {
    const quarantineUpTo = await this.#quarantineUpTo();
    return takeGathered(calls, {
      admit: (places) => this.#admit(places, quarantineUpTo),
      answered: (reports) => this.answered(reports),
      allow: (asks) => this.allow(asks),
      scoringGroupsToScore: (asked, hold = false, putOff = false) =>
        this.#scoringGroupsToScore({ asked, hold, putOff }, quarantineUpTo),
      scored: (...scores) => this.scored(...scores),
      requestJudgements: (requests) => this.requestJudgements(requests),
      takeJudging: (scoringGroup, by) => this.#takeJudging(scoringGroup, by, quarantineUpTo),
      judged: (...judged) => this.judged(...judged),
    });
  }

  segmentRows(segment: number) {
    return this.#read(() => uncompactedRows(this.#store, segment));
  }

  segmentTrace(segment: number) {
    return this.#read((spec) => traceOf(this.#store, spec, segment));
  }

  folded(segment: number, key: string): void {
    const spec = this.#open();
    if (spec === null) return;
    fold(this.#store, segment, key);
    if (this.#dispatcher.folded(segment)) this.#ticks.soon(spec);
  }

  async cancel(): Promise<boolean> {
    return (await this.#control((spec) => requestCancel(this.#store, spec, "user", this.now()))) !== null;
  }

  async close() {
    const spec = this.#open();
    if (spec !== null) await this.#housekeeping.tell(spec, new Subrequests());
    const closing = await this.#closing.close(spec, this.now());
    if (spec !== null) await this.#ticks.play(spec);
    return closing;
  }

  free(): Promise<boolean> {
    return this.#closing.free(this.now());
  }

  async pause(paused: boolean): Promise<boolean> {
    return (await this.#control(() => setPaused(this.#store, paused, this.now()))) !== null;
  }

  async setMaxConcurrent(rollouts: number): Promise<void> {
    await this.#control(() => setMaxConcurrent(this.#store, rollouts));
  }

  async retry(order: RetryOrder): Promise<RetryRefusal | null> {
    // D1's row must be written at once: while it says that the run has ended, what the run refers to may be deleted.
    this.#housekeeping.writeRowSoon();
    if (this.#readable() === null) return "unknown";
    return await this.#control((spec) => retry(this.#store, spec, order, this.now()));
  }

  async releaseLostCalls(entry: number): Promise<boolean> {
    if ((await this.#control(() => releaseLostCalls(this.#store, entry))) === null) return false;
    const spec = this.#store.spec();
    if (spec !== null) await this.#housekeeping.tell(spec, new Subrequests());
    return true;
  }

  async cancelRollout(place: RolloutSlot): Promise<boolean> {
    return (await this.#control(() => cancelOne(this.#store, place))) ?? false;
  }

  trainerChanged(snapshot: TrainerSnapshot): { acked_step: number } {
    return this.#change((spec) => this.#training.changed(spec, snapshot)) ?? { acked_step: 0 };
  }

  stepMetrics(after: number, limit: number) {
    return this.#read(() => stepsOf(this.#store, after, limit));
  }

  wake(): void {
    this.#change(() => undefined);
  }

  endpointChanged(by: LeaseIssuer = "endpoint"): void {
    this.#change(() => [this.#leases.changed(by), this.#judging.changed(by)]);
  }

  auditRecords() {
    return this.#read((spec) => recordsOf(this.ctx.storage.sql, spec, this.#store.head(), trainingRecords));
  }

  async view() {
    const spec = this.#readable();
    if (spec !== null) await this.#views.storeReport(spec);
    return this.#read((known) => this.#views.of(known));
  }

  underWay() {
    const spec = this.#open();
    return spec === null ? 0 : rolloutsUnderWay(this.#store, spec);
  }

  async rewriteRow(stored: StoredStanding | null) {
    const spec = this.#readable();
    if (spec === null) return null;
    if (stored !== null && this.#housekeeping.isInRow(spec, stored)) return "same";
    this.#housekeeping.rowIsStale();
    // In the same write: if the database does not answer, an alarm writes the row.
    await this.#ticks.arm(spec);
    await this.#closing.during(() => this.#housekeeping.writeRow(spec, new Subrequests()));
    return "written";
  }

  taskMeans(metric: string | null, range: KeyRange) {
    return this.#read(() => taskMeans(this.ctx.storage.sql, metric, range));
  }

  rollout(place: RolloutSlot) {
    return this.#read((spec) => rolloutRecord(this.#store, spec, place));
  }

  look<Name extends ListQuestion>(question: Name, ask: ListAsk<Name>) {
    return this.#read((spec) => lookAt({ store: this.#store, sql: this.ctx.storage.sql, spec }, question, ask));
  }

  segmentOf(finishSeq: number) {
    return this.#read(() => segmentOf(this.#store, finishSeq));
  }

  sources(places: readonly SourceSlot[]) {
    return this.#read(() => sourcesIn(this.#store, places));
  }

  finished(after: number, limit: number, outcome: string | null, judged = false) {
    const asked = { after, limit, outcome, judged };
    return this.#read((spec) => finishedPage(this.#store, spec, asked, this.#memory.pageBytes));
  }

  exportPage(query: ExportQuery) {
    return this.#read((spec) => exportPage(this.#store, spec, this.ctx.storage.sql, query, this.#memory.pageBytes));
  }

  async events(after: number, waitMs: number) {
    if (this.#readable() === null) return null;
    if (waitMs > 0 && this.#store.head().last_event <= after) await this.#readers.next(waitMs);
    return this.#read((spec) => eventsAfter(this.#store, after, () => this.#views.standing(spec)));
  }

  async deadLetter(queue: string, message: RunMessage): Promise<void> {
    const spec = this.#open();
    if (spec === null) return;
    noteDeadLetter(this.#store, queue, message, this.now());
    await this.#ticks.arm(spec);
  }

  protected override copyNeeds() {
    return copyNeedsOf(this.#store, this.ctx.storage.sql);
  }

  protected override correctCopied(): number {
    correctCopiedRun(this.#store, this.ctx.storage.sql);
    return this.now();
  }

  override async alarm(): Promise<void> {
    if (isAtRest(this.env)) await untilTheNextBoot();
    if (await this.#closing.decay(this.now())) return;
    this.#housekeeping.noteAlarm();
    const spec = this.#open();
    if (spec === null) return;
    await this.#ticks.reconcile(spec);
    await this.#ticks.play(spec);
  }

  /** The spec. The first call of an instance also schedules a question to everything in flight. */
  #open(): RunSpec | null {
    const spec = this.#store.spec();
    if (spec === null || this.#asked || isAtRest(this.env)) return spec;
    this.#asked = true;
    this.#quarantine.resume();
    if (this.#store.head().in_flight > 0) this.#store.askAll(this.now());
    this.#ticks.soon(spec);
    return spec;
  }

  /** Rollouts up to this `seq` are quarantined. An instance finds that out when it opens the run. */
  #quarantineUpTo(): Promise<number> {
    this.#open();
    return this.#quarantine.upTo();
  }

  /** The spec; null for a run that is being deleted, which nobody may read. */
  #readable(): RunSpec | null {
    const spec = this.#open();
    return this.#closing.isClosed ? null : spec;
  }

  #read<T>(read: (spec: RunSpec) => T): T | null {
    const spec = this.#readable();
    return spec === null ? null : read(spec);
  }

  /** Applies a change and schedules a tick. Null for a run that was never created. */
  #change<T>(change: (spec: RunSpec) => T): T | null {
    const spec = this.#open();
    if (spec === null) return null;
    const result = change(spec);
    this.#ticks.soon(spec);
    return result;
  }

  /** Applies a requested change and runs a tick at once. Null for a run that was never created. */
  async #control<T>(change: (spec: RunSpec) => T): Promise<T | null> {
    const spec = this.#readable();
    if (spec === null) return null;
    const result = change(spec);
    await this.#ticks.arm(spec);
    await this.#ticks.play(spec);
    return result;
  }
}
