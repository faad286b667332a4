/**
 * The storage of one rollout, in the object that plays it (facts.ts).
 *
 * Invariants. The object is the only writer, so stored state is read once, and a turn answered after the head was
 * written needs no second write of the head. An answer and the environment's reply to it are one write; code that is
 * about to do anything outside the object calls `keepAnswer` first. What a hook leaves for its own repetition is void
 * with the write of its outcome: a tool that must not run twice, and its SQL calls, which the rollout's database stores
 * under the number of heads written so far. Rollouts stored by earlier releases are migrated when they are read.
 */
import type { CancelReason } from "../../contract/errors.ts";
import type { Turn } from "../../contract/trajectory.ts";
import { migrateRollout } from "../../core/rollout/migrations.ts";
import type { Rollout } from "../../core/rollout/rollout.ts";
import { idsAfter } from "../../core/rollout/tokens.ts";
import { bootId } from "../environment/quarantine.ts";
import type { AgentFinish } from "../messages/agent-wire.ts";
import type { RolloutSpec } from "../messages/wire.ts";
import { openCallBudget, type RolloutCallBudget, resumedCallBudget } from "./call-budget.ts";
import { FACT, type FactsTable } from "./facts.ts";
import { type FailedTries, NO_TRIES } from "./fault.ts";

/** Without ids, which are in the turns; the turns have rows of their own. */
type Head = Omit<Rollout, "turns" | "last_ids"> & {
  readonly answered: number;
  /** The process that wrote it. */
  readonly boot: string;
  /** Number of heads written, including this one. */
  readonly writes: number;
  /** Absent in a head written before this field existed. */
  readonly purse?: RolloutCallBudget;
};

/** A tool that must not run twice. `turn`: the number of turns when it began, in the reply to the last of them. */
interface Unrepeatable {
  readonly turn: number;
  readonly tool: string;
}

/** How far an agent is. */
export interface AgentFacts {
  /** The number of leases so far. */
  readonly leases: number;
  /** The numbers of those that were lost. */
  readonly lapsed: readonly number[];
  /** When the first lease began, in epoch milliseconds; null if there was none. */
  readonly leased_at: number | null;
  readonly finish: AgentFinish | null;
  /** Why no worker will play it; null while one may. */
  readonly lost: string | null;
  /** The limit that it reached; null if it reached none. */
  readonly limit: string | null;
}

const NO_AGENT: AgentFacts = { leases: 0, lapsed: [], leased_at: null, finish: null, lost: null, limit: null };

interface Facts {
  agent: AgentFacts;
  cancel: CancelReason | null;
  acknowledged: boolean;
  unrepeatable: Unrepeatable | null;
  tries: FailedTries;
}

/** Data that may take megabytes: it is in memory only while the rollout is played. */
interface Body {
  spec: RolloutSpec | null;
  head: Head | null;
  turns: readonly Turn[];
}

export class RolloutStore {
  readonly #table: FactsTable;
  readonly #id: string;
  #askedSql = false;
  #begunHere = false;
  #facts: Facts | null = null;
  #body: Body | null = null;
  /** The rollout with an answer that is not written yet. */
  #unwritten: Rollout | null = null;
  /** Written with the next head. */
  #callBudget: RolloutCallBudget | null = null;

  constructor(table: FactsTable, id: string) {
    this.#table = table;
    this.#id = id;
  }

  /** For a rollout that was begun. */
  spec(): RolloutSpec {
    const { spec } = this.#readBody();
    if (spec === null) throw new TypeError(`${this.#id} was never begun`);
    return spec;
  }

  /** Must be called only if nothing of the rollout is stored. */
  begin(spec: RolloutSpec): void {
    this.#facts = factsOf(new Map());
    this.#body = { spec, head: null, turns: [] };
    this.#table.write(this.#id, [[FACT.spec, 0, spec]]);
    this.#begunHere = true;
  }

  /** The rollout is not played now: drops what may be large; it is read again when needed. */
  letGo(): void {
    if (this.#unwritten === null) this.#body = null;
  }

  /** True if this instance began the rollout: nothing of it ran in an earlier process. */
  get begunHere(): boolean {
    return this.#begunHere;
  }

  /** True if this process, and not an earlier one, began the next step. */
  ranHere(): boolean {
    const { head } = this.#readBody();
    return head === null ? this.#begunHere : head.boot === bootId();
  }

  /** The rollout as last saved, or null before its first save. */
  load(): Rollout | null {
    if (this.#unwritten !== null) return this.#unwritten;
    const { head, turns } = this.#readBody();
    if (head === null) return null;
    const { answered, boot: _, writes: __, purse: ___, ...rollout } = head;
    const loaded: Rollout = { ...rollout, turns, last_ids: idsAfter(turns, turns.length - 1) };
    // The answer was written before the process was killed: the call is over.
    return turns.length > answered ? { ...loaded, phase: "reply", intent: null } : loaded;
  }

  /** Saves the outcome of a model call. An answer is written later, with the environment's reply or by `keepAnswer`. */
  saveOutcome(rollout: Rollout): void {
    if (rollout.phase === "reply") this.#unwritten = rollout;
    else this.save(rollout);
  }

  /** Writes the last answered turn if it is not written yet; everything else can be derived from it. */
  keepAnswer(): void {
    const turns = this.#unwritten?.turns ?? [];
    const last = turns.at(-1);
    // A head may stand behind a turn that is written: to write the turn again would delete it.
    if (last === undefined || this.#readBody().turns[last.index] === last) return;
    this.#table.write(this.#id, [[FACT.turns, last.index, last]]);
    this.#unwritten = null;
    this.#readBody().turns = turns;
  }

  /** Writes what is not on disk before a wait. An answered turn without the head is enough. */
  rest(rollout: Rollout): void {
    this.keepAnswer();
    const { head, turns } = this.#readBody();
    const isWritten = head !== null && (turns.length > head.answered || head.phase === rollout.phase);
    if (!isWritten) this.save(rollout);
  }

  agent(): AgentFacts {
    return this.#read().agent;
  }

  setAgent(changes: Partial<AgentFacts>): void {
    const agent = { ...this.agent(), ...changes };
    this.#write(FACT.agent, agent).agent = agent;
  }

  /** Writes the head, and new or changed turns: one row if there is one new turn. What the last hook left for its repetition becomes void. */
  save(rollout: Rollout): void {
    const { turns, last_ids: _, ...rest } = rollout;
    const [facts, body] = [this.#read(), this.#readBody()];
    const changed = turns.filter((turn) => body.turns[turn.index] !== turn);
    const head = {
      ...rest,
      answered: turns.length,
      boot: bootId(),
      writes: this.writes() + 1,
      purse: this.callBudget(),
    };
    const [answer, ...others] = changed;
    // A reader of single turns takes what never changes from the first head: that one has a row of its own.
    const isBehind = body.head !== null && answer !== undefined && others.length === 0 && answer === turns.at(-1);
    this.#table.write(
      this.#id,
      isBehind
        ? [[FACT.turns, answer.index, answer, head]]
        : [...changed.map((turn) => [FACT.turns, turn.index, turn] as const), [FACT.head, 0, head]],
    );
    this.#unwritten = null;
    body.turns = turns;
    body.head = head;
    if (facts.unrepeatable !== null) this.#table.delete(this.#id, FACT.unrepeatable);
    facts.unrepeatable = null;
    this.#askedSql = false;
  }

  callBudget(): RolloutCallBudget {
    this.#callBudget ??= this.#storedCallBudget();
    return this.#callBudget;
  }

  /** Written with the next head. */
  setCallBudget(callBudget: RolloutCallBudget): void {
    this.#callBudget = callBudget;
  }

  #storedCallBudget(): RolloutCallBudget {
    const { spec, head, turns } = this.#readBody();
    const budget = spec?.budget;
    const callBudget = head?.purse ?? openCallBudget(budget ?? { ceiling: 0, base: 0 });
    const behind = head !== null && turns.length > head.answered ? turns.at(-1) : undefined;
    return resumedCallBudget(callBudget, behind ?? null, budget);
  }

  /** How many heads were written. */
  writes(): number {
    return this.#readBody().head?.writes ?? 0;
  }

  /** Must be called when a hook uses SQL: its outcome must be stored before another hook runs. */
  noteSql(): void {
    this.keepAnswer();
    this.#askedSql = true;
  }

  /** True if a hook has left something for its repetition, so that its outcome must be written. */
  isUnderWay(): boolean {
    return this.#askedSql || this.#read().unrepeatable !== null;
  }

  cancelRequest(): CancelReason | null {
    return this.#read().cancel;
  }

  requestCancel(reason: CancelReason): void {
    this.#write(FACT.cancel, reason).cancel = reason;
  }

  /** True once the run has acknowledged the final report. */
  acknowledged(): boolean {
    return this.#read().acknowledged;
  }

  acknowledge(): void {
    this.#write(FACT.acknowledged, true).acknowledged = true;
  }

  /** The tool that was begun and must not run twice; null if there is none. */
  unrepeatable(): Unrepeatable | null {
    return this.#read().unrepeatable;
  }

  /** Must be called right before the tool runs. */
  beginUnrepeatable(tool: string): void {
    this.keepAnswer();
    const begun = { turn: this.#readBody().turns.length, tool };
    this.#write(FACT.unrepeatable, begun).unrepeatable = begun;
  }

  failedTries(): FailedTries {
    return this.#read().tries;
  }

  /** Written to disk, since an object may be retired between two tries; kept in memory if the write fails. */
  noteTries(tries: FailedTries): void {
    const facts = this.#read();
    const same = facts.tries.failed === tries.failed && facts.tries.until === tries.until;
    facts.tries = tries;
    if (!same) this.#write(FACT.tries, tries);
  }

  #write(kind: (typeof FACT)[keyof typeof FACT], value: unknown): Facts {
    this.#table.write(this.#id, [[kind, 0, value]]);
    return this.#read();
  }

  #read(): Facts {
    return this.#facts ?? this.#readAll().facts;
  }

  #readBody(): Body {
    return this.#body ?? this.#readAll().body;
  }

  #readAll(): { readonly facts: Facts; readonly body: Body } {
    const stored = this.#table.read(this.#id);
    // Values that could not be written exist in memory only.
    this.#facts ??= factsOf(stored);
    this.#body ??= bodyOf(stored);
    return { facts: this.#facts, body: this.#body };
  }
}

/** Only this module writes these rows, so it can trust their shapes. */
function firstOf<T>(stored: ReadonlyMap<number, unknown[]>, kind: number): T | null {
  return (stored.get(kind)?.[0] as T | undefined) ?? null;
}

function factsOf(stored: ReadonlyMap<number, unknown[]>): Facts {
  return {
    agent: firstOf<AgentFacts>(stored, FACT.agent) ?? NO_AGENT,
    cancel: firstOf<CancelReason>(stored, FACT.cancel),
    acknowledged: firstOf<boolean>(stored, FACT.acknowledged) === true,
    unrepeatable: firstOf<Unrepeatable>(stored, FACT.unrepeatable),
    tries: firstOf<FailedTries>(stored, FACT.tries) ?? NO_TRIES,
  };
}

function bodyOf(stored: ReadonlyMap<number, unknown[]>): Body {
  return {
    spec: firstOf<RolloutSpec>(stored, FACT.spec),
    head: migratedHead(newerOf(firstOf<Head>(stored, FACT.head), firstOf<Head>(stored, FACT.headBehindTurn))),
    turns: (stored.get(FACT.turns) ?? []) as Turn[],
  };
}

/** Heads written by the first releases are not numbered; none of them is behind a turn. */
function newerOf(head: Head | null, behind: Head | null): Head | null {
  return behind !== null && behind.writes > (head?.writes ?? 0) ? behind : head;
}

function migratedHead(head: Head | null): Head | null {
  return head === null ? null : (migrateRollout(head) as Head);
}
