/**
 * One organisation, one object: what it may have at once. Each part of it stands in a file of its own, keeps rows of its
 * own and says when it wants to be tended; the object puts them together under its one alarm.
 *
 * Invariants. A run calls it at most once a second, mostly every five minutes, and never per rollout. The alarm never
 * throws.
 */
import { DurableObject } from "cloudflare:workers";
import type { AccountRpc, ShareAsk, ShareGrants } from "../contract/account-wire.ts";
import type { Serves } from "../contract/rpc.ts";
import { isAtRest, untilTheNextBoot } from "../kit/at-rest.ts";
import { AccountShares } from "./shares.ts";

export class AccountObject extends DurableObject<Env> implements Serves<AccountRpc> {
  /** The clock, replaced by tests. */
  now: () => number = () => Date.now();
  readonly shares: AccountShares;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.shares = new AccountShares(ctx, env, () => this.now());
  }

  async ask(asked: ShareAsk): Promise<ShareGrants> {
    const grants = await this.shares.ask(asked);
    await this.#arm();
    return grants;
  }

  async changed(): Promise<void> {
    await this.shares.changed();
    await this.#arm();
  }

  override async alarm(): Promise<void> {
    if (isAtRest(this.env)) await untilTheNextBoot();
    this.shares.tend();
    await this.#arm();
  }

  async #arm(): Promise<void> {
    const at = this.shares.nextAt();
    if (at !== null) await this.ctx.storage.setAlarm(at);
  }
}
