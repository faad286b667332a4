/**
 * The places that an object which plays rollouts has at the replicas of a fleet, for calls of one kind: with a call, or
 * free. What it has is sent with each request to the fleet, whose reply says which places may be used again.
 *
 * Invariants. A call's number was given out before the call began, and its end's number after the call ended, so that
 * no wrong version is assigned to it. No call begins while a request is under way: the fleet may be taking free places
 * back. After a request that failed, no place is free. All of this is in memory: after a kill, the ends that had no
 * number get a later one.
 */
import { type BlockNews, idleMs, keptMs } from "./block-times.ts";
import type {
  BlockAsk,
  BlockReply,
  CallKind,
  CallLease,
  EndedHeldCall,
  GrantedBlock,
  Place,
  WantedPlace,
} from "./rpc.ts";

export type Taken = Extract<CallLease, { kind: "go" }>;

/** A call that is about to begin. */
export interface Caller extends WantedPlace {
  readonly rollout_id: string;
}

interface Call {
  readonly taken: Taken;
  readonly rollout_id: string;
  readonly until: number;
  /** Since when the object has had the place. */
  readonly hadSince: number;
}

interface Free {
  readonly replica_id: string;
  readonly rollout_id: string;
  readonly since: number;
  /** Since when the object has had the place. */
  readonly hadSince: number;
}

/** `after`: the number of requests that were sent when the call ended; a later one numbers its end. */
interface End {
  readonly after: number;
  /** Undefined: not numbered yet. Null: no version may be assigned to the call. */
  number: number | null | undefined;
}

/** What the request under way contains. */
interface Asked {
  readonly kept: readonly Free[];
  readonly ended: readonly EndedHeldCall[];
  readonly wanted: readonly Caller[];
}

/** Ends are kept until they are stored. The oldest ones beyond this number get later numbers. */
const ENDS_KEPT = 1000;
/** A call that is overdue keeps its place for this long after each report, until it is aborted. */
const OVERDUE_MS = 1000;
/** After this many requests in a row that failed, nothing is sent unless there is something to report. */
const MOST_FAILURES = 3;
const NO_NUMBERS = { from: 0, count: 0 };

export class PlaceBlock {
  readonly #kind: CallKind;
  readonly #holder: string;
  readonly #calls = new Map<number, Call>();
  readonly #ends = new Map<number, End>();
  #free: readonly Free[] = [];
  /** By replica: what the next call at a free place gets there. */
  #again: ReadonlyMap<string, Place> = new Map();
  #numbers: GrantedBlock["numbers"] = NO_NUMBERS;
  #ended: readonly EndedHeldCall[] = [];
  #endedAt: number | null = null;
  #sent = 0;
  #sentAt = Number.NEGATIVE_INFINITY;
  #freshUntil = 0;
  #everyMs = 0;
  #full = false;
  /** How many requests failed in a row. */
  #failures = 0;
  /** A call began at a place that the fleet counts as free, or it is unknown what the fleet counts. */
  #undeclared = false;
  #asked: Asked | null = null;

  /** `holder`: a name that no other block has. */
  constructor(kind: CallKind, holder: string) {
    this.#kind = kind;
    this.#holder = holder;
  }

  /** A request was sent and has not been answered. */
  get isAsking(): boolean {
    return this.#asked !== null;
  }

  /** Begins a call at a free place; null if there is none for it. */
  take(caller: Caller, now: number): Taken | null {
    if (this.isAsking || this.#numbers.count === 0 || now >= this.#freshUntil) return null;
    const free = this.#freeFor(caller, now);
    const place = this.#again.get(free?.replica_id ?? "");
    if (free === undefined || place === undefined) return null;
    this.#free = this.#free.filter((one) => one !== free);
    this.#undeclared = true;
    return this.#begin(place, caller, now, free.hadSince);
  }

  /** A free place at the replica of the previous turn, or any for a first call; never where the call has just failed. */
  #freeFor({ last_replica, failed_replica, rollout_id }: Caller, now: number): Free | undefined {
    const fitting = this.#free.filter((one) => {
      const { replica_id } = one;
      if (replica_id === failed_replica || !this.#mayKeep(one, now)) return false;
      return last_replica === null || replica_id === last_replica;
    });
    return fitting.find((one) => one.rollout_id === rollout_id) ?? fitting[0];
  }

  #mayKeep({ hadSince }: Free, now: number): boolean {
    return now - hadSince < keptMs(this.#full);
  }

  #begin(place: Place, { rollout_id, wait_ms }: Caller, now: number, hadSince = now): Taken {
    const { from, count } = this.#numbers;
    this.#numbers = { from: from + 1, count: count - 1 };
    const taken = { kind: "go", number: from, ...place } as const;
    this.#calls.set(from, { taken, rollout_id, until: now + wait_ms, hadSince });
    return taken;
  }

  /** The call's place is free, unless its replica is at fault. */
  end(number: number, { outcome, label }: Pick<EndedHeldCall, "outcome" | "label">, now: number): void {
    const call = this.#calls.get(number);
    if (call === undefined) return;
    this.#calls.delete(number);
    const { rollout_id, taken, hadSince } = call;
    const { kind: _, ...by } = taken;
    if (this.#kind.trains && outcome === "answered") this.#noteEnd(number);
    this.#ended = [...this.#ended, { ...by, rollout_id, outcome, ...(label !== undefined && { label }) }];
    this.#endedAt ??= now;
    if (outcome !== "answered" && outcome !== "aborted") return;
    this.#free = [...this.#free, { replica_id: by.replica_id, rollout_id, since: now, hadSince }];
  }

  /** Gives the free places of a rollout back. Returns false if it has none. */
  leave(rollout_id: string): boolean {
    const kept = this.#free.filter((one) => one.rollout_id !== rollout_id);
    const left = kept.length < this.#free.length;
    this.#free = kept;
    return left;
  }

  /**
   * The number of the end of a turn's call, if it has one yet; null: no version may be assigned to it. It is returned
   * once. If it is requested again, for example because it could not be stored, it is a later number.
   */
  takeNumber(number: number): number | null | undefined {
    const end = this.#ends.get(number) ?? this.#noteEnd(number);
    if (end.number !== undefined) this.#ends.delete(number);
    return end.number;
  }

  /** The call has ended by now. One that is not known here did so in an earlier process. */
  #noteEnd(number: number): End {
    const end: End = { after: this.#sent, number: undefined };
    this.#ends.set(number, end);
    if (this.#ends.size > ENDS_KEPT) this.#ends.delete(this.#ends.keys().next().value ?? number);
    return end;
  }

  /** The next request. Call `accept` with its reply, or `fail`. */
  ask(wanted: readonly Caller[], now: number): BlockAsk {
    const oldest = now - idleMs(this.#full);
    // A rollout that wants a place gives its own one back.
    const wanting = new Set(wanted.map(({ rollout_id }) => rollout_id));
    const kept = this.#free.filter((one) => {
      const isUsed = one.since > oldest && this.#mayKeep(one, now);
      return isUsed && this.#again.has(one.replica_id) && !wanting.has(one.rollout_id);
    });
    const ended = this.#ended;
    this.#asked = { kept, ended, wanted };
    this.#free = [];
    this.#ended = [];
    this.#endedAt = null;
    this.#undeclared = false;
    this.#sent += 1;
    this.#sentAt = now;
    return {
      ...this.#kind,
      ...{ holder: this.#holder, request: this.#sent, ended },
      calls: [...this.#calls.values()].map(({ taken: { replica_id }, until }) => ({
        replica_id,
        left_ms: Math.max(OVERDUE_MS, until - now),
      })),
      idle: kept.map(({ replica_id }) => replica_id),
      wants: wanted.map(({ rollout_id: _, ...want }) => want),
    };
  }

  /** The reply to the last request. Returns what each waiting call gets, in order. */
  accept(reply: Exclude<BlockReply, { kind: "late" }>, now: number): CallLease[] {
    const { kept = [], wanted = [] } = this.#asked ?? {};
    this.#asked = null;
    this.#failures = 0;
    this.#numberEnds(reply);
    if (reply.kind === "gone") {
      this.#free = [];
      this.#numbers = NO_NUMBERS;
      return wanted.map(() => reply);
    }
    this.#everyMs = reply.every_ms;
    this.#full = reply.full;
    this.#freshUntil = this.#sentAt + reply.fresh_ms;
    this.#numbers = reply.numbers;
    this.#again = new Map(reply.again.map((place) => [place.replica_id, place]));
    // Calls that ended meanwhile left places, too.
    this.#free = [...kept, ...this.#free].filter(({ replica_id }) => this.#again.has(replica_id));
    return reply.granted.flatMap((granted, at) => {
      const caller = wanted[at];
      if (caller === undefined) return [];
      if (granted.kind === "wait") return granted;
      const { kind: _, ...place } = granted;
      return this.#begin(place, caller, now);
    });
  }

  #numberEnds(reply: Exclude<BlockReply, { kind: "late" }>): void {
    for (const [number, end] of this.#ends) {
      if (end.number !== undefined || end.after >= this.#sent) continue;
      end.number = reply.kind === "gone" || reply.unknown.includes(number) ? null : reply.end;
    }
  }

  /** It is unknown whether the last request arrived. Its reports are sent again. */
  fail(now: number): void {
    const { ended = [] } = this.#asked ?? {};
    this.#asked = null;
    this.#failures += 1;
    this.#ended = [...ended, ...this.#ended];
    if (this.#ended.length > 0) this.#endedAt ??= now;
    // The fleet may have granted places that are not known here: the next request replaces them.
    this.#undeclared = this.#failures < MOST_FAILURES || this.#calls.size > 0;
    this.#free = [];
    this.#numbers = NO_NUMBERS;
  }

  /** What there is to report, without what waits for the reply. */
  get news(): Omit<BlockNews, "urgent" | "wantedAt" | "awaited"> {
    return {
      ...{ sentAt: this.#sentAt, every_ms: this.#everyMs, failed: this.#failures > 0, endedAt: this.#endedAt },
      ...{ idleSince: this.#free[0]?.since ?? null, undeclared: this.#undeclared, full: this.#full },
    };
  }
}
