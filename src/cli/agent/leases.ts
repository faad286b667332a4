/**
 * The leases of a worker. They are extended together, three times in the shortest of their times. A lease that the
 * platform no longer counts is over: its signal is aborted with `lost` (another lease counts) or `ended` (the rollout has
 * ended).
 */
import type { AgentHeartbeat, LeasedRollout } from "../../agents/wire.ts";
import type { RollcallClient } from "../../sdk/client.ts";
import type { SteadyCalls } from "./steady-calls.ts";

/** Heartbeats in the time of a lease. */
const BEATS = 3;
const ANSWERS_WITHIN_MS = 10_000;

export type LeaseEnd = "lost" | "ended";

type HeldLease = AgentHeartbeat["leases"][number];

interface Held {
  readonly leased: LeasedRollout;
  readonly over: AbortController;
  /** When the platform extended it, by `performance.now()`. */
  extendedAt: number;
}

export interface LeaseOptions {
  readonly client: Pick<RollcallClient, "agents">;
  readonly calls: SteadyCalls;
  /** The name of the agent. */
  readonly name: string;
  /** The id of the worker. */
  readonly worker: string;
  /** Called if heartbeats are refused, as with a key that was revoked. */
  readonly onFailed: (thrown: unknown) => void;
  readonly log: (line: string) => void;
}

export class Leases {
  readonly #options: LeaseOptions;
  readonly #held = new Map<string, Held>();
  readonly #closing = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #isBeating = false;

  constructor(options: LeaseOptions) {
    this.#options = options;
  }

  /** Extends the lease from now on. Returns the signal of its end. */
  hold(leased: LeasedRollout): AbortSignal {
    const over = new AbortController();
    this.#held.set(leased.rollout_id, { leased, over, extendedAt: performance.now() });
    this.#arm();
    return over.signal;
  }

  /** The rollout has ended, or the lease is over. */
  drop({ rollout_id, lease }: LeasedRollout): void {
    // This worker may have leased it again meanwhile.
    if (this.#held.get(rollout_id)?.leased.lease === lease) this.#held.delete(rollout_id);
    this.#arm();
  }

  /** Aborts lease requests that are still waiting: this worker would not play what they return. */
  async stopLeasing(): Promise<void> {
    await this.#giveBack([]);
  }

  /** Gives back all that are left, and sends no more heartbeats. */
  async release(): Promise<void> {
    this.#closing.abort();
    clearTimeout(this.#timer);
    const leases = this.#asSent();
    if (leases.length > 0) await this.#giveBack(leases);
  }

  /** If the platform does not take them, they expire: the worker stops all the same. */
  async #giveBack(leases: readonly HeldLease[]): Promise<void> {
    const { client, name, worker, log } = this.#options;
    try {
      await client.agents.release(name, { worker, leases: [...leases] }, { timeoutMs: ANSWERS_WITHIN_MS });
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      log(`The leases could not be given back (${why}): they expire.`);
    }
  }

  #asSent(): HeldLease[] {
    return Array.from(this.#held.values(), ({ leased: { rollout_id, lease } }) => ({ rollout_id, lease }));
  }

  #arm(): void {
    clearTimeout(this.#timer);
    if (this.#held.size === 0 || this.#isBeating || this.#closing.signal.aborted) return;
    const due = Math.min(
      ...Array.from(this.#held.values(), ({ leased, extendedAt }) => extendedAt + (leased.lease_s * 1000) / BEATS),
    );
    this.#timer = setTimeout(() => void this.#beat(), Math.max(0, due - performance.now()));
  }

  async #beat(): Promise<void> {
    const { client, calls, name, worker, onFailed } = this.#options;
    const { signal } = this.#closing;
    this.#isBeating = true;
    try {
      let sentAt = 0;
      const states = await calls.make(() => {
        sentAt = performance.now();
        const request = { worker, leases: this.#asSent() };
        return client.agents.heartbeat(name, request, { signal, timeoutMs: ANSWERS_WITHIN_MS });
      }, signal);
      for (const { rollout_id, lease, state } of states) {
        const held = this.#held.get(rollout_id);
        if (held?.leased.lease !== lease) continue;
        if (state === "held") held.extendedAt = sentAt;
        else this.#end(held, state);
      }
    } catch (thrown) {
      if (!signal.aborted) onFailed(thrown);
    } finally {
      this.#isBeating = false;
      this.#arm();
    }
  }

  #end({ leased, over }: Held, state: LeaseEnd): void {
    this.#held.delete(leased.rollout_id);
    over.abort(state);
  }
}
