/**
 * Gathers the calls to the object of a run with very many rollouts at once: all calls that arrive within up to 250 ms
 * are sent to the run's object in one. There are several gatherers for such a run, and each serves a part of its callers.
 *
 * Invariants. It stores nothing, and answers a caller only after the run's object has stored the effect of the call and
 * replied. If it is killed, its callers get an error and send their calls again, as they do if the run's object is
 * killed. Each call has its own result: if one fails, it fails for its own caller only.
 */
import { DurableObject } from "cloudflare:workers";
import { sizeOf } from "../../core/size.ts";
import { gatherWaitMs } from "../kit/gather-wait.ts";
import { runObject } from "../kit/names.ts";
import { isPassing } from "../kit/storage-faults.ts";
import { Subrequests } from "../kit/subrequests.ts";
import type {
  CallOf,
  GatheredCall,
  GatheredName,
  GatheredReply,
  GatheredResult,
  GatheredRun,
  GathererRpc,
} from "../messages/gathered.ts";
import type { Serves } from "../messages/rpc.ts";
import { CALLS_TOGETHER, togetherOf } from "./gathering.ts";

/** Calls to the run's object that wait for their reply at once. Others are gathered meanwhile. */
const MOST_UNDER_WAY = 2;
/** Arguments in memory, in characters of JSON. A call that does not fit is refused, and its caller sends it later. */
const MOST_CHARACTERS = 24 * 1024 * 1024;

interface Waiting {
  readonly run: GatheredRun;
  readonly call: GatheredCall;
  /** The size of its arguments, in characters of JSON. */
  readonly characters: number;
  readonly done: (result: GatheredResult) => void;
  readonly failed: (why: unknown) => void;
}

export class GathererObject extends DurableObject<Env> implements Serves<GathererRpc> {
  #waiting: Waiting[] = [];
  #characters = 0;
  #underWay = 0;
  #sentAt = Number.NEGATIVE_INFINITY;
  #soon: ReturnType<typeof setTimeout> | undefined;

  async gather<Name extends GatheredName>(run: GatheredRun, call: CallOf<Name>): Promise<GatheredResult<Name>> {
    const characters = sizeOf(call.args);
    if (this.#characters > 0 && this.#characters + characters > MOST_CHARACTERS) {
      throw new Error("Durable Object is overloaded: the calls that wait for the run's object fill the gatherer");
    }
    const { promise, resolve, reject } = Promise.withResolvers<GatheredResult>();
    this.#characters += characters;
    this.#waiting.push({ run, call, characters, done: resolve, failed: reject });
    this.#sendSoon();
    try {
      // The run's object replies with the result of the method that was called.
      return (await promise) as GatheredResult<Name>;
    } finally {
      this.#characters -= characters;
    }
  }

  #sendSoon(): void {
    if (this.#waiting.length === 0 || this.#underWay >= MOST_UNDER_WAY) return;
    const together = togetherOf(this.#waiting.map(({ characters }) => characters));
    // Full, by calls or by their size: to wait for more would only delay it.
    if (together === CALLS_TOGETHER || together < this.#waiting.length) void this.#sendNext();
    else this.#soon ??= setTimeout(() => void this.#sendNext(), gatherWaitMs(Date.now() - this.#sentAt));
  }

  async #sendNext(): Promise<void> {
    clearTimeout(this.#soon);
    this.#soon = undefined;
    // A full call may have been sent since the timer was set.
    if (this.#underWay >= MOST_UNDER_WAY) return;
    this.#sentAt = Date.now();
    const next = this.#waiting.splice(0, togetherOf(this.#waiting.map(({ characters }) => characters)));
    this.#underWay += 1;
    this.#sendSoon();
    await this.#deliver(next);
    this.#underWay -= 1;
    this.#sendSoon();
  }

  /** Never rejects. */
  async #deliver(some: readonly Waiting[]): Promise<void> {
    try {
      const replies = await this.#send(some);
      for (const [index, waiting] of some.entries()) this.#take(waiting, replies[index]);
    } catch (thrown) {
      // One of them may be the reason: none of the others must fail for it. A fault that passes has no such reason.
      if (some.length > 1 && !isPassing(this.env, thrown)) await this.#deliverAlone(some);
      else for (const { failed } of some) failed(thrown);
    }
  }

  async #deliverAlone(some: readonly Waiting[]): Promise<void> {
    await new Subrequests().six(some, (waiting) => this.#deliver([waiting]));
  }

  async #send(some: readonly Waiting[]): Promise<readonly GatheredReply[]> {
    const [first] = some;
    if (first === undefined) return [];
    // All calls here are of one run. A new stub for each: that of an object that was evicted stays broken.
    const { scope, run_id } = first.run;
    return await runObject(this.env, scope, run_id).gathered(some.map(({ call }) => call));
  }

  #take(waiting: Waiting, reply: GatheredReply | undefined): void {
    if (reply === undefined) waiting.failed(new Error("the run's object did not reply to this call"));
    else if ("done" in reply) waiting.done(reply.done);
    else if ("later" in reply) this.#waiting.unshift(waiting);
    else waiting.failed(Object.assign(new Error(reply.failed.message), { name: reply.failed.name }));
  }
}
