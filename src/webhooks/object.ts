/**
 * The Durable Object of one webhook endpoint: its queue of deliveries, and their log.
 *
 * Invariants. Events are on disk before `enqueue` returns. An attempt is counted on disk before it is sent, so a kill
 * costs at most one attempt, and the repeat has the same id. Only the alarm sends: one delivery at a time per subject,
 * six in total, and one while the endpoint fails. Before anything is sent, the database is read for whether the
 * endpoint exists, is enabled, and how it signs. If nothing is due, there is no alarm. The alarm never throws.
 */

import { LIMITS } from "../contract/limits.ts";
import type { Send } from "../kernel/clients/outgoing.ts";
import { databaseOf } from "../kernel/db/database.ts";
import { isArmed } from "../kernel/kit/alarms.ts";
import { isAtRest, untilTheNextBoot } from "../kernel/kit/at-rest.ts";
import { backoffMs } from "../kernel/kit/backoff.ts";
import { PROCESS_SCHEDULER } from "../kernel/kit/fair-scheduler.ts";
import { idsOf, logError, logNotice } from "../kernel/kit/log.ts";
import { mailOwners } from "../kernel/kit/mail-owners.ts";
import type { OutboundEvent } from "../kernel/kit/slice-hooks.ts";
import { StoredObject } from "../kernel/kit/stored-object.ts";
import { Subrequests } from "../kernel/kit/subrequests.ts";
import { Tombstone } from "../kernel/kit/tombstone.ts";
import type { Serves } from "../kernel/messages/rpc.ts";
import { backlogOf, type Delivery, deliveryViewOf } from "./deliveries.ts";
import { forgetListening } from "./emit.ts";
import { disableWebhook } from "./queries.ts";
import type { ReplayOrder, WebhookOf, WebhookRpc } from "./rpc.ts";
import { ATTEMPTS, nextAttemptAt, verdictOf } from "./rules.ts";
import { type Address, attempt, readAddress, triedOf } from "./send.ts";
import { WebhookStore } from "./store.ts";
import type { DeliveriesQuery, WebhookBacklog, WebhookDelivery } from "./wire.ts";

type Open = Extract<Address, { kind: "open" }>;

/** After this many failures in a row, only one attempt is made at a time. */
const FAILING = 6;
/** Limits of one alarm. The next alarm continues, with newly read settings. */
const ATTEMPTS_A_RUN = 300;
const RUN_MS = 60_000;
const MAILS = 5;
/** About 2 ms: signing, sending, and two writes. */
const STEPS_PER_ATTEMPT = 40_000;
/** How long to wait while the secret cannot be decrypted, and how often to try. */
const LOCKED_MS = 3600_000;
const LOCKED_AGAIN_MS = 5 * 60_000;

export class WebhookObject extends StoredObject implements Serves<WebhookRpc> {
  /** The clock; tests replace it. */
  now: () => number = () => Date.now();
  /** The network to the endpoint; tests replace it. */
  network: Send | undefined;
  readonly #store: WebhookStore;
  readonly #tombstone: Tombstone;
  /** Ids of deliveries that are being sent. */
  readonly #underWay = new Set<string>();
  #armedAt: number | null = null;
  /** The settings in the database have changed: read them, even if nothing is due. */
  #look = false;
  /** Failed alarms in a row, and the earliest time of the next alarm. */
  #failures = 0;
  #notBefore = 0;

  constructor(state: DurableObjectState, env: Env) {
    super(state, env);
    this.#store = new WebhookStore(state.storage);
    this.#tombstone = new Tombstone(state.storage);
  }

  async enqueue(of: WebhookOf, events: readonly OutboundEvent[]): Promise<void> {
    if (this.#tombstone.stands) return;
    const count = this.#store.add(of, events, this.now());
    if (count > 0) {
      const about = { ...idsOf(of), webhook_id: of.webhook_id, count };
      logError("deliveries of a webhook are dropped", about, new Error("too many wait"));
    }
    await this.#arm();
  }

  async changed(_of: WebhookOf): Promise<void> {
    if (this.#store.of() === null) return;
    this.#look = true;
    this.#notBefore = 0;
    // The previous address had asked to wait.
    this.#store.note({ resting_until: null });
    await this.#arm();
  }

  deliveries(query: DeliveriesQuery): Promise<{ data: WebhookDelivery[]; has_more: boolean } | null> {
    const rows = this.#store.page(query);
    if (rows === null) return Promise.resolve(null);
    const data = rows.slice(0, query.limit).map(deliveryViewOf);
    return Promise.resolve({ data, has_more: rows.length > query.limit });
  }

  delivery(id: string): Promise<WebhookDelivery | null> {
    const row = this.#store.find(id);
    return Promise.resolve(row === null ? null : deliveryViewOf(row));
  }

  backlog(): Promise<WebhookBacklog> {
    return Promise.resolve(backlogOf(this.#store.standing()));
  }

  async replayOne(id: string): Promise<WebhookDelivery | null> {
    const row = this.#store.replayOne(id, this.now());
    await this.#arm();
    return row === null ? null : deliveryViewOf(row);
  }

  async replay(order: ReplayOrder): Promise<number> {
    const replayed = this.#store.replay(order, this.now());
    await this.#arm();
    return replayed;
  }

  async free(): Promise<void> {
    const freed = this.#tombstone.set(this.now());
    this.#store.forget();
    await freed;
  }

  override async alarm(): Promise<void> {
    if (isAtRest(this.env)) await untilTheNextBoot();
    if (await this.#tombstone.decay(this.now())) return;
    const of = this.#store.of();
    if (of === null) return;
    this.#armedAt = null;
    this.#look = false;
    try {
      await this.#work(of, new Subrequests());
      this.#failures = 0;
    } catch (thrown) {
      logError("webhook alarm", aboutOf(of), thrown);
      this.#notBefore = this.now() + backoffMs(this.#failures, null, of.webhook_id);
      this.#failures += 1;
    }
    await this.#arm();
  }

  async #work(of: WebhookOf, subrequests: Subrequests): Promise<void> {
    this.#store.prune(this.now());
    await this.#notifyOfDisabled(of, subrequests);
    const address = await readAddress(this.env, subrequests, of, this.now());
    if (address.kind === "none") return await this.free();
    if (address.kind === "disabled") {
      const { disabled } = this.#store.standing();
      if (disabled === null) this.#store.disable(address, 0);
      else if (this.#store.standing().pending > 0) this.#store.disable(disabled, disabled.mails);
      return;
    }
    if (this.#store.standing().disabled !== null) this.#store.enable();
    if (address.kind === "locked") return await this.#isLocked(of, address.reason, subrequests);
    if ((this.#store.standing().locked_since ?? null) !== null) this.#store.note({ locked_since: null });
    await this.#send(of, address, subrequests);
  }

  /** If a deployment lacks its secret for a while, nothing is lost. After `LOCKED_MS` the endpoint is disabled. */
  async #isLocked(of: WebhookOf, reason: string, subrequests: Subrequests): Promise<void> {
    const now = this.now();
    const since = this.#store.standing().locked_since ?? now;
    this.#notBefore = now + LOCKED_AGAIN_MS;
    if (now - since < LOCKED_MS) return this.#store.note({ locked_since: since });
    this.#store.note({ locked_since: null });
    await this.#disable(of, reason, subrequests);
  }

  /** Sends as many at a time as the endpoint can take, until nothing is due or the alarm's limit is reached. */
  async #send(of: WebhookOf, address: Open, subrequests: Subrequests): Promise<void> {
    const until = this.now() + RUN_MS;
    let left = ATTEMPTS_A_RUN;
    const next = () => {
      const { disabled, resting_until } = this.#store.standing();
      const now = this.now();
      if (left <= 0 || now >= until || disabled !== null || this.#look || this.#tombstone.stands) return undefined;
      if (resting_until !== null && resting_until > now) return undefined;
      left -= 1;
      return this.#store.due(now, LIMITS.parallelFetches + 1).find(({ id }) => !this.#underWay.has(id));
    };
    const worker = async () => {
      for (let one = next(); one !== undefined; one = next()) await this.#try(of, address, one, subrequests);
    };
    const failing = this.#store.standing().failures_in_a_row >= FAILING;
    await Promise.all(Array.from({ length: failing ? 1 : LIMITS.parallelFetches }, worker));
  }

  async #try(of: WebhookOf, address: Open, one: Delivery, subrequests: Subrequests): Promise<void> {
    const { id, attempts, type } = one;
    if (attempts >= ATTEMPTS) {
      if (!this.#store.giveUp(one, this.now())) await this.#disable(of, spent(one), subrequests);
      return;
    }
    this.#underWay.add(id);
    try {
      await PROCESS_SCHEDULER.spend(of.scope.orgId, STEPS_PER_ATTEMPT);
      if (this.#tombstone.stands || this.#store.standing().disabled !== null) return;
      const sentAt = this.now();
      const latest = sentAt + LIMITS.webhookAttemptMs;
      this.#store.begin(one, sentAt, nextAttemptAt(id, attempts + 1, latest) ?? latest);
      const answer = await subrequests.inTurn(() => attempt(this.env, address, one, sentAt, this.network));
      const now = this.now();
      if (this.#tombstone.stands) return;
      const verdict = verdictOf(answer, now);
      const why = verdict.kind === "failed" ? verdict.why : null;
      const tried = triedOf(answer, why, Math.max(0, now - sentAt), address.secrets);
      if (verdict.kind === "delivered") return this.#store.delivered(id, tried, now);
      const rest = verdict.kind === "failed" ? verdict.rest_ms : null;
      const more = this.#store.failed(id, tried, now, rest);
      if (verdict.kind === "gone") await this.#disable(of, `it answered 410 to ${type}`, subrequests);
      else if (!more) await this.#disable(of, spent(one), subrequests);
    } finally {
      this.#underWay.delete(id);
    }
  }

  async #disable(of: WebhookOf, reason: string, subrequests: Subrequests): Promise<void> {
    if (this.#store.standing().disabled !== null) return;
    this.#store.disable({ at: this.now(), reason, written: false }, MAILS);
    await this.#notifyOfDisabled(of, subrequests);
  }

  /** Reports a disabled endpoint to the people who can act: on the endpoint, in the log, and by e-mail if possible. */
  async #notifyOfDisabled(of: WebhookOf, subrequests: Subrequests): Promise<void> {
    const { disabled } = this.#store.standing();
    if (disabled === null) return;
    const { scope, webhook_id } = of;
    if (!disabled.written) {
      await subrequests.inTurn(() => disableWebhook(databaseOf(this.env), scope, webhook_id, disabled));
      forgetListening(scope);
      logNotice("webhook.disabled", aboutOf(of));
      this.#store.note({ disabled: { ...disabled, written: true } });
    }
    if (disabled.mails === 0) return;
    const subject = "A webhook endpoint was disabled";
    const text = `${webhook_id} of project ${scope.projectId} was disabled: ${disabled.reason}.\n\nUndelivered events are kept for 7 days. Enable the endpoint again, then replay them.\n`;
    this.#store.note({ disabled: { ...disabled, written: true, mails: disabled.mails - 1 } });
    await mailOwners(this.env, subrequests, scope.orgId, { subject, text });
    this.#store.note({ disabled: { ...disabled, written: true, mails: 0 } });
  }

  async #arm(): Promise<void> {
    const due = this.#dueAt();
    if (due === null || this.#tombstone.stands) return;
    const at = Math.max(this.now(), due);
    if (isArmed(this.#armedAt, at, this.now())) return;
    this.#armedAt = at;
    await this.ctx.storage.setAlarm(at);
  }

  #dueAt(): number | null {
    if (this.#store.of() === null) return null;
    const { disabled, resting_until } = this.#store.standing();
    const notifies = disabled !== null && (!disabled.written || disabled.mails > 0);
    const next = this.#store.nextAt();
    const work = notifies || this.#look ? this.now() : next && Math.max(next, resting_until ?? 0);
    const dues = [work && Math.max(work, this.#notBefore), this.#store.forgetAt()].filter((at) => at !== null);
    return dues.length === 0 ? null : Math.min(...dues);
  }
}

function spent({ type, error }: Delivery): string {
  return `all ${ATTEMPTS} attempts to deliver ${type} failed${error === null ? "" : `: ${error}`}`;
}

function aboutOf({ scope, webhook_id }: WebhookOf) {
  return { ...idsOf({ scope }), webhook_id };
}
