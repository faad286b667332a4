/**
 * The calls of the agent that plays a rollout: which of them are new, and what each is answered.
 *
 * Invariants. One call is outstanding at a time, as in every rollout; others wait in the order of their arrival. An
 * answer is on disk before it is returned. A repeated call gets the stored answer and reaches no model: a call with a
 * known `Idempotency-Key`, a call that its client marks as a repeat, and the k-th call with the same body under one
 * lease, which gets the k-th answer to that body. So an agent that starts again replays what it did, at no cost, and goes
 * on from there. Only the worker with the latest lease counts.
 */
import { AgentError, serializeError } from "../../contract/errors.ts";
import { LIMITS } from "../../contract/limits.ts";
import { type Message, textOf } from "../../contract/messages.ts";
import { historyOf, type Turn } from "../../contract/trajectory.ts";
import { advance, type Event, type Rollout } from "../../core/rollout/rollout.ts";
import { storedPrompt } from "../../core/rollout/stored-messages.ts";
import { idsOf, logError } from "../kit/log.ts";
import { agents } from "../kit/slice-hooks.ts";
import type {
  AgentAnswer,
  AgentCall,
  AgentFinish,
  AgentRefusal,
  AgentReply,
  FinishReply,
  TakenRollout,
} from "../messages/agent-wire.ts";
import type { RolloutSpec } from "../messages/wire.ts";
import type { AgentSeat } from "./driver.ts";
import type { RolloutStore } from "./store.ts";

/** After an answer the rollout stays in memory this long: most agents call again soon. */
const LINGER_MS = 3000;
/** An idle rollout is looked at this often. Its offer may have been lost. */
const LOOK_MS = 10 * 60_000;
/** The end of a rollout whose agent says nothing else. */
const COMPLETED = "agent_completed";
const MAX_TURNS = "max_turns_reached";
const MAX_SIZE = "max_size_reached";

export interface DeskParts {
  readonly env: Env;
  readonly store: RolloutStore;
  readonly now: () => number;
  /** Lets the rollout continue at once. */
  readonly wake: () => Promise<void>;
  /** False once the object hands over to its next alarm: nothing may be waited for. */
  readonly mayLinger: (ms: number) => boolean;
}

interface Waiting {
  readonly lease: number;
  readonly call: AgentCall;
  readonly reply: Promise<AgentReply>;
  readonly settle: (reply: AgentReply) => void;
}

/** Which calls of a lease were answered, as far as this instance knows. */
interface Served {
  readonly lease: number;
  /** By hash. */
  readonly counts: Map<string, number>;
  /** The last stored turn, if the process that answered it is gone: its answer may not have arrived. */
  undelivered: Turn | null;
}

export class AgentDesk implements AgentSeat {
  readonly #parts: DeskParts;
  /** The first one is outstanding if `#isOut`. */
  #waiting: Waiting[] = [];
  #isOut = false;
  #served: Served | null = null;
  /** Epoch milliseconds. */
  #offeredAt = 0;
  #arrived: () => void = () => undefined;

  constructor(parts: DeskParts) {
    this.#parts = parts;
  }

  /** A worker takes the rollout. Null if none can play it now. */
  async take(spec: RolloutSpec, rollout: Rollout | null, deadlineOf: (leasedAt: number) => number) {
    const { store, now, wake } = this.#parts;
    const facts = store.agent();
    const isOpen = rollout !== null && (rollout.phase === "reply" || rollout.phase === "sample");
    if (!isOpen || facts.finish !== null || facts.lost !== null) return null;
    const leased_at = facts.leased_at ?? now();
    store.setAgent({ leases: facts.leases + 1, leased_at });
    this.#refuseOthers(facts.leases + 1);
    await wake();
    const deadline = deadlineOf(leased_at);
    const taken: TakenRollout = {
      lease: facts.leases + 1,
      task: spec.row,
      prompt: rollout.prompt,
      deadline: Number.isFinite(deadline) ? deadline : null,
    };
    return taken;
  }

  /** Answers a call; see the invariants above. */
  async call(lease: number, call: AgentCall, spec: RolloutSpec, rollout: Rollout | null): Promise<AgentReply> {
    const facts = this.#parts.store.agent();
    if (rollout === null || rollout.phase === "close" || rollout.phase === "done" || facts.finish !== null) {
      return refused(409, "rollout_ended", "the rollout has ended");
    }
    if (lease !== facts.leases) return LEASE_LOST;
    const known = this.#known(lease, call, rollout);
    // A process that continues the call may not have begun with it yet.
    if (known instanceof Promise) await this.#wake();
    if (known !== null) return await known;
    const { max_turns = 1 } = spec.agent ?? {};
    if (rollout.turns.length + this.#waiting.length >= max_turns) {
      if (facts.limit === null) this.#parts.store.setAgent({ limit: MAX_TURNS });
      return refused(409, MAX_TURNS, `the rollout has made ${max_turns} model calls, the maximum`);
    }
    if (this.#waiting.length >= LIMITS.agentCallsWaiting) {
      const message = `${LIMITS.agentCallsWaiting} calls of the rollout wait for their answers, the maximum`;
      return refused(429, "rate_limited", message);
    }
    const { reply } = this.#enqueue(lease, call, rollout);
    if (this.#waiting.length === 1) await this.#wake();
    return await reply;
  }

  async finish(lease: number, finish: AgentFinish): Promise<FinishReply> {
    const { store } = this.#parts;
    const facts = store.agent();
    if (facts.finish !== null) {
      const isSame = JSON.stringify(facts.finish) === JSON.stringify(finish);
      return isSame ? "ended" : { over: "its agent has ended it with another request" };
    }
    if (lease !== facts.leases) return "lost";
    store.setAgent({ finish });
    await this.#wake();
    return "ended";
  }

  /** False if no worker may play the rollout again. */
  async lapse(lease: number, isLost: boolean, spec: RolloutSpec): Promise<boolean> {
    const { store } = this.#parts;
    const { leases, lapsed: before, finish, lost, limit } = store.agent();
    if (finish !== null || lost !== null) return false;
    if (lease !== leases) return true;
    // The order may come twice for a lease.
    const lapsed = isLost && !before.includes(lease) ? [...before, lease] : before;
    if (lapsed !== before) store.setAgent({ lapsed });
    const { max_leases = 1, name = "" } = spec.agent ?? {};
    if (lapsed.length < max_leases && limit === null) return true;
    store.setAgent({ lost: `the rollout was lost by ${lapsed.length} workers of the agent ${name}` });
    await this.#wake();
    return false;
  }

  /** When the rollout must continue although its agent does nothing; null: the agent has done something. */
  async idleUntil(rollout: Rollout): Promise<number | null> {
    const { store, now, mayLinger } = this.#parts;
    if (this.#hasWork()) return null;
    const { leased_at } = store.agent();
    const spec = store.spec();
    if (leased_at === null) {
      const until = rollout.started_at + (spec.agent?.queue_timeout_s ?? 0) * 1000;
      if (now() >= until) {
        store.setAgent({ lost: `no worker of the agent ${spec.agent?.name ?? ""} leased the rollout in time` });
        return null;
      }
      await this.#offer(spec, rollout);
      return this.#hasWork() ? null : Math.min(until, now() + LOOK_MS);
    }
    // The queue of agents can be lost, in a restore: a rollout that it does not have is offered again.
    if (this.#offeredAt === 0) this.#offeredAt = now();
    await this.#offer(spec, rollout);
    if (mayLinger(LINGER_MS)) {
      store.rest(rollout);
      await this.#linger();
    }
    return this.#hasWork() ? null : now() + LOOK_MS;
  }

  /** A call that does not fit into the rollout is refused, and its agent can still end it with its rewards. */
  advance(rollout: Rollout): Rollout {
    const { store } = this.#parts;
    const event = this.#next(rollout);
    const after = advance(rollout, event);
    // From this write on, the end that its agent reports comes too late.
    if (this.ending() === "lost") store.save(after);
    if (event.type !== "replied" || after.stop_condition !== MAX_SIZE) return after;
    store.setAgent({ limit: MAX_SIZE });
    const { finish } = store.agent();
    if (finish !== null) return advance(rollout, endOf(rollout, { ...finish, answer: null }, MAX_SIZE));
    this.settle(rollout, TOO_LARGE);
    return rollout;
  }

  #next(rollout: Rollout): Event {
    const { finish, lost, limit } = this.#parts.store.agent();
    if (finish !== null) return endOf(rollout, finish, limit);
    if (lost !== null) return { type: "failed", failure: "agent", error: serializeError(new AgentError(lost)) };
    const [first] = this.#waiting;
    if (first === undefined) throw new TypeError("the agent did nothing");
    this.#isOut = true;
    const { messages, tools, sampling, hash, key, train = true } = first.call;
    const asked = {
      ...{ hash, lease: first.lease, tools, sampling },
      ...(key !== null && { key }),
      ...(!train && { train }),
    };
    const prompt = storedPrompt(messages, rollout.turns);
    return { type: "replied", ...prompt, state: rollout.state, final_env_response: null, asked };
  }

  settle(rollout: Rollout, refusal: AgentRefusal | null): void {
    // The answer must be on disk before it is returned: the output gate waits for the write.
    this.#parts.store.keepAnswer();
    if (!this.#isOut) return;
    this.#isOut = false;
    const done = this.#waiting.shift();
    const last = rollout.turns.at(-1);
    if (refusal !== null) done?.settle({ kind: "refused", ...refusal });
    else if (rollout.phase === "reply" && last !== undefined) done?.settle(answerOf(last));
    else done?.settle(refusalOf(rollout));
  }

  /** The rollout makes no further call. `rollout` null: it could not be played to its end. */
  close(rollout: Rollout | null): void {
    const reply = rollout === null ? refused(409, "rollout_ended", "the rollout has ended") : refusalOf(rollout);
    for (const { settle } of this.#waiting) settle(reply);
    this.#waiting = [];
    this.#isOut = false;
    this.#arrived();
  }

  /** A cancelled rollout does not wait for its agent. */
  interrupt(): void {
    this.#arrived();
  }

  ending(): "finished" | "lost" | null {
    const { finish, lost } = this.#parts.store.agent();
    if (finish !== null) return "finished";
    return lost === null ? null : "lost";
  }

  /** True while the rollout waits for its agent. */
  isIdle({ phase }: Rollout): boolean {
    return phase === "reply" && !this.#hasWork();
  }

  #hasWork(): boolean {
    return this.ending() !== null || this.#waiting.length > 0;
  }

  async #wake(): Promise<void> {
    this.#arrived();
    await this.#parts.wake();
  }

  async #linger(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#arrived = resolve;
    const timer = setTimeout(resolve, LINGER_MS);
    await promise;
    clearTimeout(timer);
  }

  /** Repeated until it worked: then the slice keeps it. */
  async #offer(spec: RolloutSpec, rollout: Rollout): Promise<void> {
    if (this.#parts.now() - this.#offeredAt < LOOK_MS) return;
    this.#parts.store.rest(rollout);
    try {
      await agents().offer(this.#parts.env, spec);
      this.#offeredAt = this.#parts.now();
    } catch (thrown) {
      logError("rollout could not be offered to its agent", idsOf(spec), thrown);
    }
  }

  #enqueue(lease: number, call: AgentCall, { turns }: Rollout): Waiting {
    const { promise, resolve } = Promise.withResolvers<AgentReply>();
    const { counts } = this.#servedOf(lease, turns);
    const count = (more: number) => counts.set(call.hash, (counts.get(call.hash) ?? 0) + more);
    const settle = (reply: AgentReply) => {
      // A refused call has no answer, so the next one with this body is not a repeat of it.
      if (reply.kind === "refused") count(-1);
      resolve(reply);
    };
    count(1);
    const waiting = { lease, call, reply: promise, settle };
    this.#waiting.push(waiting);
    return waiting;
  }

  /** Refuses the waiting calls of earlier leases. The outstanding call continues, and its answer is stored. */
  #refuseOthers(lease: number): void {
    const isEarlier = (one: Waiting) => one.lease !== lease;
    for (const { settle } of this.#waiting.filter(isEarlier)) settle(LEASE_LOST);
    this.#waiting = this.#waiting.filter((one) => !isEarlier(one));
    this.#isOut = false;
  }

  /** The reply to a repeated call; null if the call is new. */
  #known(lease: number, call: AgentCall, rollout: Rollout): AgentReply | Promise<AgentReply> | null {
    const { hash, key, retry } = call;
    const { turns, intent } = rollout;
    const keyed = key === null ? undefined : turns.find(({ asked }) => asked?.key === key);
    const joined = this.#waiting.find(
      (one) => (key !== null && one.call.key === key) || (retry && one.call.hash === hash),
    );
    const other = keyed?.asked?.hash ?? (joined?.call.key === key ? joined?.call.hash : undefined) ?? hash;
    if (other !== hash) {
      return refused(400, "idempotency_key_reused", "Idempotency-Key: was used with another request body");
    }
    if (keyed !== undefined) return answerOf(keyed);
    if (joined !== undefined) return joined.reply;
    const served = this.#servedOf(lease, turns);
    const { undelivered } = served;
    served.undelivered = null;
    if (undelivered?.asked?.hash === hash) return answerOf(undelivered);
    const stored = turns.filter(({ asked }) => asked?.hash === hash);
    const count = served.counts.get(hash) ?? 0;
    const again = retry && count > 0 ? stored[count - 1] : undefined;
    if (again !== undefined) return answerOf(again);
    const next = stored[count];
    if (next !== undefined) served.counts.set(hash, count + 1);
    if (next !== undefined) return answerOf(next);
    // The process or the worker that made the outstanding call is gone.
    if (intent?.asked?.hash !== hash || this.#isOut) return null;
    this.#isOut = true;
    const waiting = this.#enqueue(lease, call, rollout);
    this.#waiting = [waiting, ...this.#waiting.filter((one) => one !== waiting)];
    return waiting.reply;
  }

  #servedOf(lease: number, turns: readonly Turn[]): Served {
    if (this.#served?.lease === lease) return this.#served;
    const counts = new Map<string, number>();
    const own = turns.filter(({ asked }) => asked?.lease === lease);
    for (const { asked } of own) if (asked !== undefined) counts.set(asked.hash, (counts.get(asked.hash) ?? 0) + 1);
    const last = turns.at(-1);
    this.#served = { lease, counts, undelivered: last?.asked?.lease === lease ? last : null };
    return this.#served;
  }
}

const TOO_LARGE: AgentRefusal = {
  status: 409,
  code: MAX_SIZE,
  message: "with this call the turns of the rollout would be larger than they may be: end the rollout",
};
const LEASE_LOST = refused(409, "lease_lost", "another worker has leased the rollout meanwhile");

function refused(status: number, code: string, message: string): AgentReply {
  return { kind: "refused", status, code, message };
}

function answerOf({ index, model, completion, finish_reason, usage, answered_at }: Turn): AgentAnswer {
  return { kind: "answered", turn: index, model, message: completion, finish_reason, usage, answered_at };
}

/** Why a rollout that is ending answers no call. A 5xx would be retried by the agent's client. */
function refusalOf({ error, stop_condition, cancelled }: Rollout): AgentReply {
  const why = error?.message ?? cancelled ?? stop_condition ?? "ended";
  return refused(409, "rollout_ended", `the rollout has ended: ${why}`);
}

function endOf(rollout: Rollout, finish: AgentFinish, limit: string | null): Event {
  const { answer, error, reported, state: given, stop_condition, is_truncated } = finish;
  if (error !== null) {
    const { failure, error: name, message } = error;
    return { type: "failed", failure, error: { ...serializeError(new AgentError(message)), error: name } };
  }
  const isSaid = textOf(rollout.turns.at(-1)?.completion) === answer?.trim();
  if (answer !== null && !isSaid && rollout.final_env_response === null) {
    const final: Message = { role: "assistant", content: answer };
    const prompt = rollout.turns.length === 0 ? rollout.prompt : historyOf(rollout.turns);
    return { type: "replied", prompt, state: rollout.state, final_env_response: [final] };
  }
  return {
    type: "stopped",
    condition: limit ?? stop_condition ?? COMPLETED,
    state: { ...rollout.state, ...given },
    is_truncated: is_truncated || limit !== null,
    ...(reported !== null && { reported }),
  };
}
