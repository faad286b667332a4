/**
 * The Durable Object for the trainer of one training run: which batch it may have, what it has trained, and which
 * weights it has published. The decisions are in files of pure rules; this file stores their results and reports them.
 *
 * Invariants. Every answer is on disk before it is sent. Every change is reported to the run's object until that
 * acknowledges the same state or a later one. A report has the whole state, so lost, repeated and late reports do no
 * harm. Every change wakes the requests that wait for a batch. An object that was never created answers `unknown` or
 * null and writes nothing. The alarm never throws.
 */

import type { BatchManifest, Leased, LeaseView, WeightVersions } from "../../contract/trainer-wire.ts";
import { leaseId, mintId } from "../../core/ids.ts";
import type { ServedWeights } from "../../core/training/numbering.ts";
import type { Send } from "../clients/outgoing.ts";
import type { OfferReply } from "../clients/trainer.ts";
import { isArmed } from "../kit/alarms.ts";
import { isAtRest, untilTheNextBoot } from "../kit/at-rest.ts";
import { idsOf, logError } from "../kit/log.ts";
import { runObject } from "../kit/names.ts";
import { isSameText, leaseToken, macWithin, minting, readId } from "../kit/secrets.ts";
import { fleets } from "../kit/slice-hooks.ts";
import { StoredObject } from "../kit/stored-object.ts";
import { Tombstone } from "../kit/tombstone.ts";
import type { Serves } from "../messages/rpc.ts";
import type {
  Answer,
  ReadyBatch,
  TrainerRefusal,
  TrainerRpc,
  TrainerSnapshot,
  TrainerSpec,
} from "../messages/training-wire.ts";
import { WaitingReaders } from "../run/pages.ts";
import { ack, expireLease, heartbeat, lease, nack, type Outcome, offer, revive, type Serial } from "./batch-state.ts";
import { newsForFleet, orderOf, orderTakenByFleet } from "./fleet-orders.ts";
import { answerOffer, beginOffer, offerAt, sendOffer } from "./offers.ts";
import { register } from "./registration.ts";
import {
  batchAt,
  type DeliveredBatch,
  isOver,
  type Lease,
  type Offer,
  snapshotOf,
  type TrainerState,
} from "./state.ts";
import { TrainerStore } from "./store.ts";
import { acknowledgeAndPublish, type Report, report, reportWithAck, weightVersionsOf } from "./weight-versions.ts";

type Asked<Name extends keyof TrainerRpc, At extends 0 | 1 = 0> = Parameters<TrainerRpc[Name]>[At];

const UNKNOWN = { ok: false, refusal: { code: "unknown" } } as const;
/** First wait before a report to a run's object that did not answer is repeated. Each later wait is twice as long. */
const NOTIFY_AGAIN_MS = 5000;
const LONGEST_TELL_MS = 10 * 60_000;

export class TrainerObject extends StoredObject implements Serves<TrainerRpc> {
  /** The clock, replaced by tests. */
  now: () => number = () => Date.now();
  /** The network that leads to the trainer's address, replaced by tests. */
  network: Send | undefined;
  readonly #store: TrainerStore;
  readonly #waiting = new WaitingReaders();
  readonly #tombstone: Tombstone;
  #armedAt: number | null = null;
  /** The last `seq` that the run's object has acknowledged, as far as this instance knows. */
  #notifiedSeq = -1;
  /** The last acknowledgement of a batch that the run's object has. */
  #known: number | null = null;
  #telling = false;
  /** Reports in a row that were not answered. */
  #unheard = 0;
  /** The same for the fleet. */
  readonly #order = { telling: false, unheard: 0 };

  constructor(state: DurableObjectState, env: Env) {
    super(state, env);
    this.#store = new TrainerStore(state.storage);
    this.#tombstone = new Tombstone(state.storage);
  }

  async create(spec: TrainerSpec): Promise<void> {
    if (this.#store.spec() !== null || this.#tombstone.stands) return;
    this.#store.create(spec);
    // Sends the initial weights to its fleet.
    if (spec.fleet !== undefined) await this.#keep(spec, this.#store.state());
  }

  async ready(batches: readonly ReadyBatch[], known: Asked<"ready", 1>): Promise<TrainerSnapshot | null> {
    const spec = this.#store.spec();
    if (spec === null) return null;
    const now = this.now();
    this.#known = known.acked_step;
    await this.#keep(spec, offer(expireLease(this.#store.state(), spec, now), batches, known, now));
    return this.#snapshot(known.acked_step);
  }

  snapshot({ acked_step }: Asked<"snapshot">): TrainerSnapshot | null {
    return this.#store.spec() === null ? null : this.#snapshot(acked_step);
  }

  async register(asked: Asked<"register">): ReturnType<TrainerRpc["register"]> {
    return await this.#change((state, spec, now) => register(state, spec, asked, this.#past(asked.last_acked), now));
  }

  async lease(asked: Asked<"lease">): ReturnType<TrainerRpc["lease"]> {
    const until = this.now() + asked.max_wait_s * 1000;
    for (;;) {
      const answer = await this.#change((state, spec, now) => lease(state, spec, asked, now));
      if (!answer.ok) return answer;
      if (!("waiting" in answer.value)) return { ok: true, value: await this.#leased(answer.value) };
      const left = until - this.now();
      if (left <= 0 || !(await this.#waiting.next(left))) return { ok: true, value: answer.value };
    }
  }

  async heartbeat(id: string, asked: Asked<"heartbeat", 1>): ReturnType<TrainerRpc["heartbeat"]> {
    const answer = await this.#change((state, spec, now) =>
      heartbeat(state, spec, this.#serialOf(spec, id, asked.token), asked.epoch, now),
    );
    if (!answer.ok) return answer;
    return { ok: true, value: { expires_at: Math.floor(answer.value.expires_at / 1000) } };
  }

  async ack(id: string, asked: Asked<"ack", 1>): ReturnType<TrainerRpc["ack"]> {
    return await this.#change((state, spec, now) => {
      const serial = this.#serialOf(spec, id, asked.token);
      const acked = ack(state, spec, serial, asked, this.#past(asked), now);
      const { answer, state: after } = acked;
      if (!answer.ok || asked.published === undefined) return acked;
      const said = reportWithAck(answer.value.step, asked.epoch, asked.published);
      return acknowledgeAndPublish(state, acked, this.#reported(after, said, now));
    });
  }

  async nack(id: string, asked: Asked<"nack", 1>): ReturnType<TrainerRpc["nack"]> {
    return await this.#change((state, spec, now) =>
      nack(state, spec, this.#serialOf(spec, id, asked.token), asked, now),
    );
  }

  async report(asked: Asked<"report">): ReturnType<TrainerRpc["report"]> {
    const refusal = await this.#forward(asked);
    if (refusal !== null) return { ok: false, refusal };
    const answer = await this.#change((state, _spec, now) => this.#reported(state, asked, now));
    return answer.ok ? { ok: true, value: this.#weightVersions() } : answer;
  }

  /** A report about a replica from outside the fleet is sent to the fleet before it counts. */
  async #forward(asked: Report): Promise<TrainerRefusal | null> {
    const spec = this.#store.spec();
    const { replica, version, state } = asked;
    if (spec?.fleet === undefined || asked.of_fleet !== undefined) return null;
    if (replica === undefined || state === "published") return null;
    const before = this.#store.state();
    const { answer } = report(before, asked, this.#readingOf(asked), this.now());
    if (!answer.ok) return answer.refusal;
    if (!answer.value) return null;
    const { scope, run_id, fleet } = spec;
    const { generation } = before;
    const said = { run_id, generation, version, replica, state };
    await fleets().object(this.env, scope, fleet.id).reported({ scope, fleet_id: fleet.id }, said);
    return null;
  }

  #readingOf(asked: Report): { readonly told: boolean; readonly onFleet: boolean } {
    return { told: this.#store.wasReported(asked), onFleet: this.#store.spec()?.fleet !== undefined };
  }

  /** The caller must save the state before it awaits anything, so that both are written together. */
  #reported(state: TrainerState, asked: Report, now: number): Outcome<boolean> {
    const outcome = report(state, asked, this.#readingOf(asked), now);
    if (outcome.answer.ok && outcome.answer.value) {
      this.#store.noteReport(asked, mintId("wv", minting(this.env, now)), now);
    }
    return outcome;
  }

  weightVersions(): WeightVersions | null {
    return this.#store.spec() === null ? null : this.#weightVersions();
  }

  served(): ServedWeights[] | null {
    return this.#store.spec() === null ? null : this.#store.served(this.now());
  }

  async batch(
    step: number,
    { max_wait_s }: { readonly max_wait_s: number } = { max_wait_s: 0 },
  ): ReturnType<TrainerRpc["batch"]> {
    const until = this.now() + max_wait_s * 1000;
    for (;;) {
      const spec = this.#store.spec();
      if (spec === null) return null;
      const batch = this.#store.batchAtStep(step);
      const comes = (batch === null || batch.state === "void") && step <= spec.max_steps;
      const left = until - this.now();
      if (!comes || isOver(this.#store.state(), spec) || left <= 0) return batch;
      await this.#waiting.next(left);
    }
  }

  async revive(step: number): Promise<boolean> {
    const spec = this.#store.spec();
    if (spec === null) return false;
    const before = this.#store.state();
    const after = revive(before, step, this.now());
    await this.#keep(spec, after);
    return after !== before;
  }

  async free(): Promise<void> {
    await this.#release();
    const freed = this.#tombstone.set(this.now());
    this.#store.forget();
    await freed;
    this.#waiting.wake();
  }

  /** Releases the fleet now, because nothing else would do it after this object is freed. */
  async #release(): Promise<void> {
    const spec = this.#store.spec();
    if (spec?.fleet === undefined || this.#store.state().fleet?.released === true) return;
    await fleets().object(this.env, spec.scope, spec.fleet.id).release(spec.run_id);
  }

  override async alarm(): Promise<void> {
    if (isAtRest(this.env)) await untilTheNextBoot();
    if (await this.#tombstone.decay(this.now())) return;
    const spec = this.#store.spec();
    if (spec === null) return;
    this.#armedAt = null;
    try {
      await this.#keep(spec, expireLease(this.#store.state(), spec, this.now()));
      await this.#offer(spec);
    } catch (thrown) {
      logError("trainer alarm", idsOf(spec), thrown);
    }
    await this.#arm(spec);
  }

  async #change<T>(decide: (state: TrainerState, spec: TrainerSpec, now: number) => Outcome<T>): Promise<Answer<T>> {
    const spec = this.#store.spec();
    if (spec === null) return UNKNOWN;
    const { state, answer } = decide(this.#store.state(), spec, this.now());
    await this.#keep(spec, state);
    return answer;
  }

  /** Saves the state first, then wakes waiting requests and reports to the run's object. */
  async #keep(spec: TrainerSpec, state: TrainerState): Promise<void> {
    // The object was freed during the call.
    if (this.#tombstone.stands) return;
    const before = this.#store.state();
    this.#store.save(state, this.now());
    await this.#arm(spec);
    if (isNews(before, state)) this.#waiting.wake();
    if (state.seq > this.#notifiedSeq) this.ctx.waitUntil(this.#notify(spec));
    if (newsForFleet(state, spec) !== null) this.ctx.waitUntil(this.#notifyFleet(spec));
  }

  /** Sends pending orders to the fleet, one at a time. */
  async #notifyFleet(spec: TrainerSpec): Promise<void> {
    if (this.#order.telling || spec.fleet === undefined) return;
    this.#order.telling = true;
    const { scope, run_id, fleet: named } = spec;
    const { id } = named;
    try {
      for (let news = newsForFleet(this.#store.state(), spec); news !== null; ) {
        const fleet = fleets().object(this.env, scope, id);
        if (news.kind === "release") await fleet.release(run_id);
        else await fleet.update(orderOf(spec, named, this.#store.state(), this.#store.weightsOf(news.version), news));
        this.#order.unheard = 0;
        if (this.#tombstone.stands) return;
        await this.#keep(spec, orderTakenByFleet(this.#store.state(), news));
        news = newsForFleet(this.#store.state(), spec);
      }
    } catch (thrown) {
      this.#order.unheard += 1;
      logError("fleet does not answer its trainer", idsOf({ scope, run_id, endpoint_id: id }), thrown);
    } finally {
      this.#order.telling = false;
    }
  }

  /** Sends one report at a time; changes made meanwhile are in the next one. The alarm repeats a lost report. */
  async #notify({ scope, run_id }: TrainerSpec): Promise<void> {
    if (this.#telling) return;
    this.#telling = true;
    try {
      for (let state = this.#store.state(); state.seq > this.#notifiedSeq; state = this.#store.state()) {
        const run = runObject(this.env, scope, run_id);
        const heard = await run.trainerChanged(this.#snapshot(this.#known ?? state.known_acked));
        [this.#notifiedSeq, this.#known] = [state.seq, heard.acked_step];
        this.#unheard = 0;
      }
    } catch (thrown) {
      this.#unheard += 1;
      logError("run does not answer its trainer", idsOf({ scope, run_id }), thrown);
    } finally {
      this.#telling = false;
    }
  }

  async #offer(spec: TrainerSpec): Promise<void> {
    const now = this.now();
    const begun = beginOffer(this.#store.state(), spec, now);
    if (begun === null) return;
    await this.#keep(spec, begun.state);
    const { offer, batch, state } = begun;
    const lease = this.#leaseView(spec, offer.serial, offer.attempt, now + offer.ttl_ms);
    const manifest = await this.#manifest(batch);
    const { epoch } = state;
    const reply = await sendOffer(this.env, spec, {
      ...{ batch, manifest, lease, epoch, now, network: this.network },
    });
    if (reply.kind === "absent" || reply.kind === "refused") {
      logError("offer", { ...idsOf(spec), batch_id: batch.batch_id }, new Error(reply.message));
    }
    const at = this.now();
    const answered = answerOffer(this.#store.state(), spec, offer, reply, at);
    await this.#keep(spec, this.#publishedBy(answered, offer, reply, at));
  }

  #publishedBy(state: TrainerState, offer: Offer, reply: OfferReply, now: number): TrainerState {
    const { serial, step } = offer;
    if (reply.kind !== "acked" || reply.published === undefined) return state;
    const { ack = null } = batchAt(state, step) ?? {};
    // The batch was acknowledged under another lease, so these weights are from a trainer that lost its lease.
    if (ack === null || (ack.lease ?? serial) !== serial) return state;
    return this.#reported(state, reportWithAck(step, state.epoch, reply.published), now).state;
  }

  async #arm(spec: TrainerSpec): Promise<void> {
    const state = this.#store.state();
    const now = this.now();
    const notifyAt = state.seq > this.#notifiedSeq ? now + notifyWait(this.#unheard) : null;
    const orderAt = newsForFleet(state, spec) === null ? null : now + notifyWait(this.#order.unheard);
    const due = [state.lease?.expires_at ?? null, offerAt(state, spec), notifyAt, orderAt].filter((at) => at !== null);
    if (due.length === 0) return;
    const at = Math.max(now, Math.min(...due));
    if (isArmed(this.#armedAt, at, now)) return;
    this.#armedAt = at;
    await this.ctx.storage.setAlarm(at);
  }

  #snapshot(known: number): TrainerSnapshot {
    const state = this.#store.state();
    // The last known acknowledgement is included again, because its metrics may arrive after its weights.
    const acks = this.#store.acks(Math.min(known, state.acked_step) - 1);
    return snapshotOf(state, acks);
  }

  #weightVersions(): WeightVersions {
    return weightVersionsOf(this.#store.state(), this.#store.weights());
  }

  #past(named: { readonly batch_id: string } | null): DeliveredBatch | null {
    return named === null ? null : this.#store.batchById(named.batch_id);
  }

  async #leased({ lease, batch }: { lease: Lease; batch: DeliveredBatch }): Promise<Leased> {
    const { serial, attempt, expires_at } = lease;
    const manifest = await this.#manifest(batch);
    const spec = this.#store.spec();
    if (spec === null) throw new Error("a lease of an object that was never created");
    return { lease: this.#leaseView(spec, serial, attempt, expires_at), manifest };
  }

  #leaseView(spec: TrainerSpec, serial: number, attempt: number, expiresAt: number): LeaseView {
    const { run_id } = spec;
    const id = leaseId(run_id, serial, macWithin(this.env, run_id));
    return { id, token: leaseToken(this.env, run_id, id), expires_at: Math.floor(expiresAt / 1000), attempt };
  }

  /** The number of a lease if the token is right; otherwise null. */
  #serialOf({ run_id }: TrainerSpec, id: string, token: string): Serial {
    const parsed = readId(this.env, id);
    if (parsed?.kind !== "lease" || parsed.runId !== run_id) return null;
    return isSameText(token, leaseToken(this.env, run_id, id)) ? parsed.serial : null;
  }

  async #manifest({ manifest_key }: ReadyBatch): Promise<BatchManifest> {
    const object = await this.env.STORE.get(manifest_key);
    if (object === null) throw new Error(`manifest ${manifest_key} is missing`);
    return await object.json<BatchManifest>();
  }
}

function notifyWait(unheard: number): number {
  return Math.min(LONGEST_TELL_MS, NOTIFY_AGAIN_MS * 2 ** unheard);
}

/** Whether a request that waits for a batch might get another answer now. */
function isNews(before: TrainerState, after: TrainerState): boolean {
  return (
    before.batches !== after.batches ||
    before.epoch !== after.epoch ||
    before.paused !== after.paused ||
    before.ended !== after.ended
  );
}
