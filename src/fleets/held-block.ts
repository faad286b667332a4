/**
 * Renews an object's block of places (place-block.ts) at its fleet, when block-times.ts says so. Calls that find no
 * free place wait for the reply. One request is under way at a time.
 */
import { renewAt } from "./block-times.ts";
import { type Caller, PlaceBlock } from "./place-block.ts";
import type { BlockAsk, BlockReply, CallKind, CallLease, EndedCall } from "./rpc.ts";

interface Waiting {
  readonly caller: Caller;
  readonly at: number;
  readonly served: (lease: CallLease) => void;
  readonly failed: (why: unknown) => void;
}

export interface HolderParts {
  readonly kind: CallKind;
  readonly send: (ask: BlockAsk) => Promise<BlockReply>;
  readonly now: () => number;
  /** Ends could not be reported. They are reported again. */
  readonly noteFailure: (thrown: unknown) => void;
}

export class HeldBlock {
  readonly #parts: HolderParts;
  readonly #block: PlaceBlock;
  #waiting: readonly Waiting[] = [];
  /** A call failed, or its reply contradicts its weights. */
  #urgent = false;
  /** Called after the next request. */
  #awaited: readonly (() => void)[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(parts: HolderParts) {
    this.#parts = parts;
    this.#block = new PlaceBlock(parts.kind, crypto.randomUUID());
  }

  /** A place for the call, or why there is none. Throws if the fleet cannot be reached. */
  take(caller: Caller): Promise<CallLease> {
    const { promise, resolve, reject } = Promise.withResolvers<CallLease>();
    const waiting = { caller, at: this.#parts.now(), served: resolve, failed: reject };
    this.#waiting = [...this.#waiting, waiting];
    this.#serve();
    return promise;
  }

  /** Reports the end of a call later, or at once if `urgent`: then this resolves after the report. */
  async end(number: number, { urgent, ...end }: Pick<EndedCall, "outcome" | "label"> & { readonly urgent: boolean }) {
    this.#block.end(number, end, this.#parts.now());
    this.#urgent ||= urgent;
    this.#serve();
    if (urgent) await this.#nextReply();
  }

  /** See `PlaceBlock.takeNumber`. */
  takeNumber(number: number): number | null | undefined {
    return this.#block.takeNumber(number);
  }

  /**
   * Gives the places of a rollout that is over back, and returns the numbers of the ends of these calls. A number is null
   * if two requests failed.
   */
  async settle(rollout_id: string, numbers: readonly number[]): Promise<(number | null)[]> {
    const ends = new Map<number, number | null>();
    const isOpen = () => {
      for (const number of numbers) {
        const end = ends.has(number) ? undefined : this.takeNumber(number);
        if (end !== undefined) ends.set(number, end);
      }
      return ends.size < new Set(numbers).size;
    };
    const left = this.#block.leave(rollout_id);
    if (isOpen() || left) await this.#nextReply();
    // The request failed: the next one contains the same ends.
    if (isOpen()) await this.#nextReply();
    isOpen();
    return numbers.map((number) => ends.get(number) ?? null);
  }

  /** Resolves after the next request that is sent. */
  #nextReply(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#awaited = [...this.#awaited, resolve];
    this.#plan();
    return promise;
  }

  /** Calls that wait begin at free places; for the others the block is renewed. */
  #serve(): void {
    this.#waiting = this.#waiting.filter(({ caller, served }) => {
      const taken = this.#block.take(caller, this.#parts.now());
      if (taken !== null) served(taken);
      return taken === null;
    });
    this.#plan();
  }

  #plan(): void {
    clearTimeout(this.#timer);
    if (this.#block.isAsking) return;
    const wantedAt = this.#waiting[0]?.at ?? null;
    const at = renewAt({ ...this.#block.news, urgent: this.#urgent, wantedAt, awaited: this.#awaited.length > 0 });
    if (at === null) return;
    this.#timer = setTimeout(() => void this.#renew(), Math.max(0, at - this.#parts.now()));
  }

  async #renew(): Promise<void> {
    const { now, send, noteFailure } = this.#parts;
    const [waiting, awaited, urgent] = [this.#waiting, this.#awaited, this.#urgent];
    const ask = this.#block.ask(
      waiting.map(({ caller }) => caller),
      now(),
    );
    this.#waiting = [];
    this.#awaited = [];
    this.#urgent = false;
    try {
      const reply = await send(ask);
      if (reply.kind === "late") throw new Error("a later request of this holder came first");
      const leases = this.#block.accept(reply, now());
      for (const [at, { served, failed }] of waiting.entries()) {
        const lease = leases[at];
        if (lease === undefined) failed(new Error("the fleet did not answer for each call"));
        else served(lease);
      }
    } catch (thrown) {
      this.#block.fail(now());
      this.#urgent ||= urgent;
      if (ask.ended.length > 0) noteFailure(thrown);
      for (const { failed } of waiting) failed(thrown);
    }
    for (const resolve of awaited) resolve();
    this.#serve();
  }
}
