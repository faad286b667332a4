/** The state of a trainer's object, used as the object does: the new state is kept, whatever the answer is. */

import type { WeightsOut } from "../../src/contract/trainer-wire.ts";
import { TrainerTarget } from "../../src/contract/training-request.ts";
import type { OfferReply } from "../../src/kernel/clients/trainer.ts";
import type { ReadyBatch, TrainerRefusal } from "../../src/kernel/messages/training-wire.ts";
import { ack, heartbeat, lease, nack, type Outcome, offer } from "../../src/kernel/trainer/batch-state.ts";
import { answerOffer, beginOffer, offerAt } from "../../src/kernel/trainer/offers.ts";
import { register } from "../../src/kernel/trainer/registration.ts";
import { type DeliveryTerms, NEW_TRAINER, type Offer, type TrainerState } from "../../src/kernel/trainer/state.ts";
import { acknowledgeAndPublish, report, reportWithAck } from "../../src/kernel/trainer/weight-versions.ts";

const GOING = { paused: false, ended: false, acked_step: 0 };
export const PUSH = { delivery: "push", url: "https://gpu.example/batches" };

export function terms(target: object = {}, max_steps = 100): DeliveryTerms {
  return { target: TrainerTarget.parse({ max_attempts: 3, lease_s: 60, ...target }), max_steps };
}

export function batch(step: number, generation = 0): ReadyBatch {
  const batch_id = `bat_${generation}_${step}`;
  const sha256 = `${generation}${step}`.padStart(64, "0");
  return { step, generation, batch_id, sha256, manifest_key: batch_id, max_policy_version: 0 };
}

interface AckSaid {
  readonly sha256?: string;
  readonly epoch?: number;
  readonly metrics?: Readonly<Record<string, number | null>>;
  readonly not_finite?: readonly string[];
  readonly published?: WeightsOut;
}

export class TrainerByHand {
  state: TrainerState = NEW_TRAINER;
  now = 0;
  readonly terms: DeliveryTerms;

  constructor(asked: DeliveryTerms = terms()) {
    this.terms = asked;
  }

  #keep<T>({ state, answer }: Outcome<T>): T | TrainerRefusal["code"] {
    this.state = state;
    return answer.ok ? answer.value : answer.refusal.code;
  }

  ready(...steps: number[]): void {
    this.readyIn(this.state.generation, ...steps);
  }

  readyIn(generation: number, ...steps: number[]): void {
    const batches = steps.map((step) => batch(step, generation));
    this.state = offer(this.state, batches, GOING, this.now);
  }

  register(asked: { version?: number; last?: number; reset_to?: number; id?: string } = {}) {
    const { last, id = "t0", ...versions } = asked;
    const named = last === undefined ? null : batch(last, this.state.generation);
    const request = { ...versions, trainer_id: id, kind: "test", last_acked: named };
    return this.#keep(register(this.state, this.terms, request, null, this.now));
  }

  lease(want_step = this.state.acked_step + 1, epoch = this.state.epoch) {
    const asked = { trainer_id: this.state.trainer?.id ?? "t0", epoch, want_step, max_wait_s: 0 };
    return this.#keep(lease(this.state, this.terms, asked, this.now));
  }

  /** The serial of a fresh lease. */
  leased(): number {
    const answer = this.lease();
    if (typeof answer === "string" || "waiting" in answer) throw new Error(JSON.stringify(answer));
    return answer.lease.serial;
  }

  heartbeat(serial: number | null, epoch = this.state.epoch) {
    return this.#keep(heartbeat(this.state, this.terms, serial, epoch, this.now));
  }

  /** `serial` null: the token does not belong to the lease. `told`: its weights were reported before. */
  ack(serial: number | null, step: number, said: AckSaid = {}, told = false) {
    const { batch_id, sha256 } = batch(step, this.state.generation);
    const named = { token: "", batch_id, sha256, produced_version: step };
    const asked = { ...named, epoch: this.state.epoch, metrics: {}, ...said };
    const acked = ack(this.state, this.terms, serial, asked, null, this.now);
    if (!acked.answer.ok || said.published === undefined) return this.#keep(acked);
    const published = reportWithAck(acked.answer.value.step, asked.epoch, said.published);
    const reported = report(acked.state, published, { told }, this.now);
    return this.#keep(acknowledgeAndPublish(this.state, acked, reported));
  }

  nack(serial: number | null, retryable = true, reason = "oom") {
    const asked = { token: "", epoch: this.state.epoch, reason, retryable };
    return this.#keep(nack(this.state, this.terms, serial, asked, this.now));
  }

  report(state: "pending" | "published" | "applied" | "failed", version: number, told = false) {
    const asked = { version, state, epoch: this.state.epoch };
    return this.#keep(report(this.state, asked, { told }, this.now));
  }

  /** What the object does in its alarm. */
  offer(): Offer {
    const begun = beginOffer(this.state, this.terms, this.now);
    if (begun === null) throw new Error("nothing to offer");
    this.state = begun.state;
    return begun.offer;
  }

  answered(made: Offer, reply: OfferReply): void {
    this.state = answerOffer(this.state, this.terms, made, reply, this.now);
  }

  offerAt(): number | null {
    return offerAt(this.state, this.terms);
  }

  trained(...steps: number[]): void {
    for (const step of steps) this.ack(this.leased(), step);
  }
}
