/**
 * The object of one organisation: what it may have at once, and other state of it. Each part is in a file of its own,
 * has rows of its own, and reports when its next work is due; the object combines them under its one alarm.
 *
 * Invariants. A run calls each part at most once a second, never per rollout. The alarm never throws. After the
 * organisation was deleted, the object accepts late calls and stores nothing of them.
 */

import { isAtRest, untilTheNextBoot } from "../kit/at-rest.ts";
import { StoredObject } from "../kit/stored-object.ts";
import { Tombstone } from "../kit/tombstone.ts";
import type { AccountLeaseAsk, AccountRpc, GrantedLeases } from "../messages/account-wire.ts";
import type { Serves } from "../messages/rpc.ts";
import { AccountLeases } from "./leases.ts";

/** The part of a slice that stores data of an organisation. */
export interface AccountPart {
  /** True while something is being copied to the stores. */
  readonly isCopying: boolean;
  /** Its limits, its billing or its budgets changed. */
  changed(): Promise<void>;
  /** Never throws. */
  tend(): Promise<void>;
  /** Epoch milliseconds; null if there is nothing to do. */
  nextAt(): number | null;
}

export class AccountObject extends StoredObject implements Serves<AccountRpc> {
  /** The clock, replaced by tests. */
  now: () => number = () => Date.now();
  leases: AccountLeases;
  protected readonly tombstone: Tombstone;
  /** When the alarm is due, as far as this instance has set it. */
  #armedAt: number | null = null;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.tombstone = new Tombstone(ctx.storage);
    this.leases = new AccountLeases(ctx, env, () => this.now());
  }

  /** The further part that a slice adds. */
  protected otherPart(): AccountPart | null {
    return null;
  }

  /** Replaces the parts, whose cached rows were deleted. */
  protected makeParts(): void {
    this.leases = new AccountLeases(this.ctx, this.env, () => this.now());
  }

  async ask(asked: AccountLeaseAsk): Promise<GrantedLeases> {
    const grantedLeases = await this.leases.ask(asked);
    await this.arm();
    return grantedLeases;
  }

  async changed() {
    await this.leases.changed();
    await this.otherPart()?.changed();
    await this.arm();
    return { granted: this.leases.granted() };
  }

  async forget(): Promise<boolean> {
    if (this.otherPart()?.isCopying) return false;
    await this.tombstone.set(this.now());
    this.makeParts();
    return true;
  }

  override async alarm(): Promise<void> {
    if (isAtRest(this.env)) await untilTheNextBoot();
    this.#armedAt = null;
    if (await this.tombstone.decay(this.now())) return;
    this.leases.tend();
    await this.otherPart()?.tend();
    await this.arm();
  }

  protected async arm(): Promise<void> {
    const due = [this.leases.nextAt(), this.otherPart()?.nextAt() ?? null].filter((at) => at !== null);
    if (due.length === 0) return;
    const at = Math.min(...due);
    // An early alarm that finds nothing to do is cheaper than moving it at each call.
    if (this.#armedAt !== null && this.#armedAt <= at && this.#armedAt > this.now()) return;
    await this.ctx.storage.setAlarm(at);
    this.#armedAt = at;
  }
}
