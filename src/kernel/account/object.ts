/**
 * One organisation, one object: what it may have at once, and what else is kept of it. Each part of it stands in a file of
 * its own, keeps rows of its own and says when it wants to be tended; the object puts them together under its one alarm.
 *
 * Invariants. A run calls each part at most once a second, and never per rollout. The alarm never throws. Once its
 * organisation is gone it takes what still comes, and keeps nothing of it.
 */
import { DurableObject } from "cloudflare:workers";
import { isAtRest, untilTheNextBoot } from "../kit/at-rest.ts";
import { Tombstone } from "../kit/tombstone.ts";
import type { AccountRpc, ShareAsk, ShareGrants } from "../messages/account-wire.ts";
import type { Serves } from "../messages/rpc.ts";
import { AccountShares } from "./shares.ts";

/** What a slice keeps of an organisation. */
export interface AccountPart {
  /** Whether something of it is on its way to the stores. */
  readonly isCopying: boolean;
  /** Its limits, its billing or its budgets are not what they were. */
  changed(): Promise<void>;
  /** Never throws. */
  tend(): Promise<void>;
  /** Epoch milliseconds; null while there is nothing to tend. */
  nextAt(): number | null;
}

export class AccountObject extends DurableObject<Env> implements Serves<AccountRpc> {
  /** The clock, replaced by tests. */
  now: () => number = () => Date.now();
  shares: AccountShares;
  protected readonly tombstone: Tombstone;
  /** When the alarm goes, as far as this instance knows. */
  #armedAt: number | null = null;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.tombstone = new Tombstone(ctx.storage);
    this.shares = new AccountShares(ctx, env, () => this.now());
  }

  /** What a slice keeps here besides. */
  protected otherPart(): AccountPart | null {
    return null;
  }

  /** In place of parts that know of rows that are gone. */
  protected makeParts(): void {
    this.shares = new AccountShares(this.ctx, this.env, () => this.now());
  }

  async ask(asked: ShareAsk): Promise<ShareGrants> {
    const grants = await this.shares.ask(asked);
    await this.arm();
    return grants;
  }

  async changed(): Promise<void> {
    await this.shares.changed();
    await this.otherPart()?.changed();
    await this.arm();
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
    this.shares.tend();
    await this.otherPart()?.tend();
    await this.arm();
  }

  protected async arm(): Promise<void> {
    const due = [this.shares.nextAt(), this.otherPart()?.nextAt() ?? null].filter((at) => at !== null);
    if (due.length === 0) return;
    const at = Math.min(...due);
    // One that comes early finds nothing to tend, and is cheaper than to put it off at each call.
    if (this.#armedAt !== null && this.#armedAt <= at && this.#armedAt > this.now()) return;
    await this.ctx.storage.setAlarm(at);
    this.#armedAt = at;
  }
}
