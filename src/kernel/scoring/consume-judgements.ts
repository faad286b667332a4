/**
 * Consumer of `rollout-judgements`: calls the judges of one scoring group and sends its scores to the run.
 *
 * Invariants. Questions to judges are built again from the trajectories: only judgements are stored. Each judgement is
 * stored by the run before the next is requested, so after a kill the next consumer requests only what is missing. A
 * scoring group that cannot be finished now (a judge must wait, another endpoint, no time left) is returned, and the
 * run sends it again when it may continue.
 */

import { InfraError } from "../../contract/errors.ts";
import { LIMITS } from "../../contract/limits.ts";
import {
  type CallBudget,
  callCost,
  covers,
  loseCall,
  loseOpen,
  newCallBudget,
  reserveCall,
  type Spending,
  settleCall,
} from "../../core/costs/call-budget.ts";
import { judgeCosts } from "../../core/costs/run-costs.ts";
import type { JudgeAsk, JudgeResult } from "../../core/rubrics/judges.ts";
import { scoreJudged } from "../../core/rubrics/score.ts";
import { scoringGroupWork } from "../../core/rubrics/work.ts";
import { isReferenceKey } from "../../core/training/reference.ts";
import type { Connection } from "../clients/outgoing.ts";
import type { CachedJudgement } from "../db/cached-judgements.ts";
import { FIRST_LOOK_MS, hangUpOnceOver } from "../kit/hang-up.ts";
import { idsOf, logError } from "../kit/log.ts";
import { runOrGatherer } from "../kit/names.ts";
import { retry } from "../kit/retry.ts";
import type { Subrequests } from "../kit/subrequests.ts";
import type { GatheredRpc } from "../messages/gathered.ts";
import type {
  AskOutcome,
  JudgedAsk,
  JudgementRequest,
  JudgingScoringGroup,
  Recorded,
  ReportedOutcome,
} from "../messages/judge-outcome.ts";
import type { Delivery, JudgementMessage } from "../messages/wire.ts";
import { chunksOf } from "../run/queues.ts";
import { type Addressed, askBound, askJudge, JudgeCache } from "./ask-judge.ts";
import { askReferences } from "./ask-references.ts";
import { AskReservation, PUT_OFF_MS } from "./ask-reservation.ts";
import { pairUp } from "./consume-scores.ts";
import { samplesOfGroup, weightsOf } from "./group-samples.ts";
import { HeldTrajectories, NO_MEMORY_MS, NoMemoryError } from "./held-trajectories.ts";
import { storeReference } from "./references.ts";
import { judgementRequestOf, judgesOf, openScoring, QUEUE_WORK, type QueueWork, scoreInTurn } from "./scoring-pass.ts";

/** An invocation lasts at most 15 minutes, and the last call may take 10. */
const LAST_ASK_MS = 4 * 60_000;
/** Subrequests that are kept for the time after the last call: for sending judgements and scores. */
const SUBREQUESTS_KEPT = 150;
/** Judgements of the cache that one call to the run reports: with their replies they must fit into its arguments. */
const FOUND_PER_CALL = 256;

export async function judgeScoringGroup(
  env: Env,
  message: JudgementMessage,
  delivery: Delivery,
  subrequests: Subrequests,
  firstLookMs = FIRST_LOOK_MS,
): Promise<void> {
  // A new stub for each call: judges take minutes, and a stub stays broken if its object was evicted meanwhile.
  const { scope, run_id, unit: scoringGroup } = message;
  const run = () => runOrGatherer(env, message, message.gatherers, scoringGroup);
  const taken = await subrequests.object(() => run().takeJudging(scoringGroup, delivery));
  if (taken === null) return;
  const judging = new ScoringGroupJudging(env, run, taken, { subrequests, firstLookMs });
  const { claim, endpoint_id, calls } = taken;
  try {
    const limits = delivery.pace === undefined ? QUEUE_WORK.light : QUEUE_WORK.heavy;
    await settleScoringGroup(env, run, taken, { judging, limits }, subrequests);
  } catch (thrown) {
    const why = whyGivenBack(thrown);
    if (why.failed) logError("judging failed", { ...idsOf({ scope, run_id }), unit: scoringGroup }, thrown);
    await run().requestJudgements([{ unit: scoringGroup, claim, endpoint_id, calls, ...why, spent: judging.giveUp() }]);
  }
}

/** Neither too much work nor a lack of memory is a failure. */
function whyGivenBack(thrown: unknown): Pick<JudgementRequest, "heavy" | "not_before" | "failed"> {
  if (thrown instanceof HeavyScoringGroupError) return { heavy: true };
  return thrown instanceof NoMemoryError ? { not_before: Date.now() + NO_MEMORY_MS } : { failed: true };
}

/** Its scores take more work than the queue allows: the scoring group moves to another queue. */
class HeavyScoringGroupError extends Error {
  override readonly name = "HeavyScoringGroupError";
}

async function settleScoringGroup(
  env: Env,
  run: () => GatheredRpc,
  taken: JudgingScoringGroup,
  how: Pick<Judged, "judging" | "limits">,
  subrequests: Subrequests,
): Promise<void> {
  const { spec, unit: scoringGroup } = taken;
  const held = new HeldTrajectories(env, spec, scoringGroup, subrequests);
  const questions = new AskReservation(env, spec.scope.orgId);
  try {
    await settleWithin(env, run, taken, { ...how, held, questions }, subrequests);
  } finally {
    questions.leave();
    held.drop();
  }
}

/** `held`, `questions`: the memory that it uses. */
interface Judged {
  readonly judging: ScoringGroupJudging;
  readonly limits: QueueWork;
  readonly held: HeldTrajectories;
  readonly questions: AskReservation;
}

async function settleWithin(
  env: Env,
  run: () => GatheredRpc,
  taken: JudgingScoringGroup,
  { judging, limits, held, questions }: Judged,
  subrequests: Subrequests,
): Promise<void> {
  const { spec, unit: scoringGroup, claim, settled } = taken;
  const scoring = await openScoring(env, spec, subrequests);
  // The pinned code is not deployed any more; reconciliation ends these as unscored.
  if (scoring === null) return;
  const ask = async (pending: readonly JudgeAsk[], characters: number) => {
    // Judges and references take minutes. The next pass reads them again.
    held.drop();
    const may = questions.hold(characters);
    if (may === "later") return null;
    if (may === "full") return judging.putOff(pending);
    return await judging.ask(pending).finally(() => questions.leave());
  };
  const asked = settled.filter(([key]) => !isReferenceKey(key));
  const judged = await scoreJudged({ known: Object.fromEntries(asked), ask }, async (known) => {
    const judges = { named: judgesOf(spec), known };
    const work = scoringGroupWork(limits.scoringGroupSteps);
    await questions.enter();
    const trajectories = await held.read();
    const scored = await (await scoreInTurn(env, spec, scoringGroup, scoring, trajectories, { judges, work })).result;
    if (work.exceeded && limits === QUEUE_WORK.light) throw new HeavyScoringGroupError("it takes more work");
    if (scored === null) throw new InfraError(`scoring group ${scoringGroup.unit} was given up: it waits for nothing`);
    return scored;
  });
  let pending = judged.kind === "scored" ? [] : judged.pending;
  if (judged.kind === "scored") {
    const members = pairUp(scoringGroup, judged.records);
    const references = new Map(settled);
    const make = async () => {
      await questions.enter();
      const trajectories = await held.read();
      const weights = await weightsOf(env, spec, trajectories, subrequests);
      const group = { members, trajectories, newest_version: scoringGroup.newest_version, weights, references };
      return await samplesOfGroup(env, spec, scoring.environment, group, subrequests);
    };
    const asking = {
      ask,
      get goesOn() {
        return judging.goesOn;
      },
    };
    const made = await askReferences(make, references, asking);
    if (made.pending.length === 0) {
      const of = { unit: scoringGroup.unit, claim, spent: judging.spent };
      await subrequests.object(() => run().scored(members, made.samples ? [made.samples] : [], of));
      return;
    }
    pending = made.pending;
  }
  if (!judging.goesOn) return;
  const request = judgementRequestOf(spec, scoringGroup.unit, pending, (key) => judging.notBefore(key));
  const given = { ...request, claim, spent: judging.spent, ...(judging.isSilent && { silent: true }) };
  await subrequests.object(() => run().requestJudgements([given]));
}

interface Means {
  readonly subrequests: Subrequests;
  /** How long a judge may take before the run is asked whether the scoring group is still wanted. */
  readonly firstLookMs: number;
}

/** The judge calls of one scoring group, while this consumer has the claim. */
class ScoringGroupJudging {
  readonly #env: Env;
  readonly #run: () => GatheredRpc;
  readonly #taken: JudgingScoringGroup;
  readonly #subrequests: Subrequests;
  readonly #firstLookMs: number;
  readonly #cache: JudgeCache;
  readonly #recorded: Map<string, Recorded>;
  readonly #notBefore: Map<string, number>;
  readonly #until: number;
  /** What the claim may spend; null in a run without a cap. */
  #callBudget: CallBudget | null;
  #goesOn = true;
  #silent = false;
  #asked = 0;

  constructor(env: Env, run: () => GatheredRpc, taken: JudgingScoringGroup, { subrequests, firstLookMs }: Means) {
    this.#env = env;
    this.#run = run;
    this.#taken = taken;
    this.#subrequests = subrequests;
    this.#firstLookMs = firstLookMs;
    this.#until = Date.now() + (taken.patience_ms ?? LAST_ASK_MS);
    this.#callBudget = taken.allowance_micros === undefined ? null : newCallBudget(taken.allowance_micros);
    this.#cache = new JudgeCache(env, taken.spec, subrequests);
    this.#recorded = new Map(taken.failed.map(({ key, calls, replies }) => [key, { calls, replies }]));
    this.#notBefore = new Map(taken.failed.map(({ key, next_at }) => [key, next_at]));
  }

  /** False if the claim was taken over, or the scoring group is not wanted any more. */
  get goesOn(): boolean {
    return this.#goesOn;
  }

  /** True if a call was aborted because others waited after it. */
  get isSilent(): boolean {
    return this.#silent;
  }

  /** What the claim spent: calls without a result count as lost. */
  get spent(): Spending {
    const { spent, lost } = loseOpen(this.#callBudget ?? newCallBudget(0));
    return { micros: spent, lost };
  }

  /** No further call is sent. Returns what the claim spent. */
  giveUp(): Spending {
    this.#goesOn = false;
    return this.spent;
  }

  /** When an ask may be made again (epoch milliseconds); 0: at any time. */
  notBefore(key: string): number {
    return this.#notBefore.get(key) ?? 0;
  }

  /** Delays all of them for a while. */
  putOff(pending: readonly JudgeAsk[]): ReadonlyMap<string, JudgeResult> {
    const again = Date.now() + PUT_OFF_MS;
    for (const { key } of pending) this.#notBefore.set(key, Math.max(again, this.notBefore(key)));
    return new Map();
  }

  /** Judgements for those that may be requested now and belong to the endpoint of this claim. */
  async ask(pending: readonly JudgeAsk[]): Promise<ReadonlyMap<string, JudgeResult>> {
    const given = new Map<string, JudgeResult>();
    const due = pending.flatMap((ask) => this.#addressed(ask));
    const cached = await this.#cache.find(due);
    const found = due.flatMap(({ ask }) => {
      const judgement = cached.get(ask.key);
      return judgement === undefined ? [] : [judgedAsk(ask, foundJudgement(judgement))];
    });
    for (const some of chunksOf(found, FOUND_PER_CALL)) await this.#tell(some, given);
    const open = due.filter(({ ask }) => !cached.has(ask.key)).values();
    const lane = async (hangUp: AbortSignal) => {
      for (const addressed of open) {
        if (!this.#mayAsk()) return;
        const bound = this.#reserve(addressed.ask);
        // A later claim asks it, with a sufficient reservation.
        if (bound === null) continue;
        this.#asked += 1;
        await this.#askOne(addressed, given, hangUp, bound);
      }
    };
    const askAll = ({ signal }: AbortController) =>
      Promise.all(Array.from({ length: this.#taken.lanes }, () => lane(signal)));
    await hangUpOnceOver(askAll, () => this.#isOver(), this.#firstLookMs);
    return given;
  }

  /**
   * True if the scoring group's judges are not needed any more: it is cancelled, or has ended. If another consumer has
   * taken it over, calls in flight still count. A run that does not answer counts as false.
   */
  async #isOver(): Promise<boolean> {
    const { unit: scoringGroup, claim, spec } = this.#taken;
    try {
      const reply = await this.#subrequests.object(() => this.#run().judged(scoringGroup.unit, claim, []));
      this.#goesOn &&= reply?.go_on ?? false;
      return reply === null || reply.over;
    } catch (thrown) {
      logError("run does not answer", { ...idsOf(spec), unit: scoringGroup.unit }, thrown);
      return false;
    }
  }

  async #askOne(
    addressed: Addressed,
    given: Map<string, JudgeResult>,
    hangUp: AbortSignal,
    bound: number,
  ): Promise<void> {
    const { ask, target } = addressed;
    const { spec, unit: scoringGroup } = this.#taken;
    // The key is the same after a lost call, and another one after an answered call that is repeated.
    const recorded = this.#recorded.get(ask.key) ?? { calls: 0, replies: 0 };
    const key = `${spec.run_id}:judge:${scoringGroup.unit}:${ask.key}:${recorded.replies}`;
    let left = false;
    const read: (readonly number[])[] = [];
    const take = (logprobs: readonly number[]) => read.push(logprobs);
    const call = async (signal: AbortSignal, connection: Connection) => {
      left = true;
      const came = await askJudge(this.#env, spec, target, ask, key, { hangUp: signal, connection, take });
      this.#settle(ask, bound, came);
      return came;
    };
    const outcome = await this.#subrequests.inTurn((connection) =>
      this.#inTime((signal) => call(signal, connection), hangUp),
    );
    if (!left) this.#callBudget &&= settleCall(this.#callBudget, bound, 0);
    if (outcome === null) return;
    const logprobs = read.at(-1);
    if (outcome.kind === "given" && logprobs !== undefined)
      await storeReference(this.#env, spec, ask, logprobs, this.#subrequests);
    await this.#tell([judgedAsk(ask, { ...outcome, recorded })], given);
    if (outcome.kind !== "given") return;
    const { value, reason, reply } = outcome;
    await this.#cache.keep(addressed, { value, reason, reply });
  }

  /** Reserves the maximum cost of the next call; null if the claim's reservation is too small. */
  #reserve(ask: JudgeAsk): number | null {
    if (this.#callBudget === null) return 0;
    const bound = askBound(this.#taken.spec, ask);
    if (!covers(this.#callBudget, bound)) return null;
    this.#callBudget = reserveCall(this.#callBudget, bound);
    return bound;
  }

  /** If the call throws, its reservation stays open and counts as lost with the claim. */
  #settle(ask: JudgeAsk, bound: number, outcome: AskOutcome): void {
    const answered = outcome.kind === "given" || outcome.replied === true;
    const unknown = outcome.usage === null && (answered || outcome.lost === true);
    const cost = outcome.usage === null ? 0 : callCost(judgeCosts(this.#taken.spec, ask.judge), outcome.usage);
    this.#callBudget &&= unknown ? loseCall(this.#callBudget, bound) : settleCall(this.#callBudget, bound, cost);
  }

  /** Null if it was aborted before a reply: then there is nothing to report. */
  async #inTime(
    call: (signal: AbortSignal) => Promise<AskOutcome>,
    hangUp: AbortSignal,
  ): Promise<(AskOutcome & Pick<ReportedOutcome, "took_ms">) | null> {
    if (this.#silent) return null;
    const { patience_ms } = this.#taken;
    const impatience = new AbortController();
    const timer = patience_ms === undefined ? null : setTimeout(() => impatience.abort(), patience_ms);
    const departed = Date.now();
    try {
      const outcome = await call(AbortSignal.any([hangUp, impatience.signal]));
      const unanswered = outcome.kind === "failed" && outcome.replied !== true;
      if (unanswered && impatience.signal.aborted) this.#silent = true;
      if (unanswered && (hangUp.aborted || impatience.signal.aborted)) return null;
      return { ...outcome, took_ms: Date.now() - departed };
    } finally {
      if (timer !== null) clearTimeout(timer);
    }
  }

  async #tell(asks: readonly JudgedAsk[], given: Map<string, JudgeResult>): Promise<void> {
    const { unit: scoringGroup, claim } = this.#taken;
    const reply = await retry(() => this.#subrequests.object(() => this.#run().judged(scoringGroup.unit, claim, asks)));
    for (const [key, judgement] of reply?.settled ?? []) given.set(key, judgement);
    this.#goesOn &&= reply?.go_on ?? false;
    const [first] = asks;
    if (reply?.next_at != null && first !== undefined) {
      this.#notBefore.set(first.key, reply.next_at);
    }
  }

  #addressed(ask: JudgeAsk): Addressed[] {
    const target = this.#taken.spec.judges?.[ask.judge];
    const ours = target !== undefined && target.endpoint_id === this.#taken.endpoint_id;
    return ours && this.notBefore(ask.key) <= Date.now() ? [{ ask, target }] : [];
  }

  /** A claim makes at least one call, however little is left: else a large scoring group would never be judged. */
  #mayAsk(): boolean {
    const left = LIMITS.subrequests - this.#subrequests.count;
    const mayGoOn = Date.now() < this.#until && left > SUBREQUESTS_KEPT;
    return this.#goesOn && !this.#silent && (this.#asked === 0 || mayGoOn);
  }
}

function judgedAsk(ask: JudgeAsk, outcome: ReportedOutcome): JudgedAsk {
  const { key, judge, pass, rollout_id, left_out, seed } = ask;
  return { key, judge, pass, rollout_id, left_out, seed, outcome };
}

function foundJudgement({ value, reason, reply }: CachedJudgement): AskOutcome {
  return { kind: "given", value, reason, reply, usage: null, cached: true };
}
