/** The platform from the trainer's view, in memory: batches in strict order, epochs, leases that may be lost. */

import type { ApiError, ErrorDetails, Leased } from "rollcall/contract";
import { ApiRequestError } from "rollcall/sdk/trainer";
import type { Batches } from "../batches.ts";
import type { TrainerParts } from "../trainer.ts";
import { handMadeBatch } from "./hand-made-batch.ts";

type Client = TrainerParts["client"];
type Code = ApiError["error"]["code"];

export function refusal(status: number, code: Code, details: ErrorDetails = {}): ApiRequestError {
  const error = { code, message: code, param: null, type: "api_error", ...details };
  return new ApiRequestError(status, error, { requestId: null, retryAfterMs: null });
}

export class ScriptedPlatform implements Client, Batches {
  readonly max_steps: number;
  /** What happened, in order. */
  readonly log: string[] = [];
  /** Thrown by the next acknowledgement, which then has no effect. */
  failsAck: Error | null = null;
  /** Changes the manifest that is read before the lease, to simulate another batch. */
  readAhead: Partial<Leased["manifest"]> = {};
  /** Called when a batch is leased. */
  onLease: () => void = () => undefined;
  /** Called when a batch is acknowledged. */
  onAck: () => void | Promise<void> = () => undefined;
  published = 0;
  #epoch = 0;
  #acked = 0;
  readonly #batches = new Map<number, Awaited<ReturnType<typeof handMadeBatch>>>();

  constructor(maxSteps: number) {
    this.max_steps = maxSteps;
  }

  register: Client["register"] = async ({ version = this.published, last_acked, reset_to }) => {
    if (reset_to !== undefined) this.published = this.#acked = reset_to;
    if (version < this.published) throw refusal(409, "conflict", { published: this.published });
    const lost = (await this.#batch(this.#acked + 1)).manifest;
    if (last_acked?.batch_id === lost.batch_id && last_acked.sha256 === lost.sha256) this.#acked += 1;
    if (version < this.#acked) this.#acked = version;
    this.#epoch += 1;
    this.log.push(`register ${version}`);
    const { max_steps, published } = this;
    return {
      epoch: this.#epoch,
      next_step: this.#acked + 1,
      published,
      delivery: "pull",
      max_steps,
    };
  };

  next: Batches["next"] = async ({ epoch }, step, stop): Promise<Leased> => {
    stop.throwIfAborted();
    this.#fence(epoch);
    if (step !== this.#acked + 1) throw refusal(409, "step_mismatch", { next_step: this.#acked + 1 });
    const { manifest } = await this.#batch(step);
    this.log.push(`lease ${step}`);
    this.onLease();
    const lease = { id: `ls_${step}`, token: "x", expires_at: 4_000_000_000, attempt: 1 };
    return { lease, manifest };
  };

  heartbeat: Client["heartbeat"] = async () => ({ expires_at: 4_000_000_000 });

  ack: Client["ack"] = async (_lease, { epoch, batch_id, published: out }) => {
    const failure = this.failsAck;
    this.failsAck = null;
    if (failure !== null) throw failure;
    this.#fence(epoch);
    this.#acked += 1;
    this.log.push(`ack ${this.#acked}${out === undefined ? "" : ", published"}`);
    if (out !== undefined) this.published = this.#acked;
    await this.onAck();
    const { published } = this;
    return { batch_id, step: this.#acked, next_step: this.#acked + 1, published };
  };

  nack: Client["nack"] = async (_lease, { reason, retryable }) => {
    this.log.push(`nack ${reason}`);
    return { state: retryable ? "ready" : "dead" };
  };

  manifest: Client["manifest"] = async (step) => {
    this.log.push(`read ${step}`);
    return { ...(await this.#batch(step)).manifest, ...this.readAhead };
  };

  objects: Client["objects"] = async (manifest) => (await this.#batch(manifest.step)).source.objects(manifest);

  credits: Client["credits"] = async (step) => (await this.#batch(step)).source.credits();

  reportVersion: Client["reportVersion"] = async ({ version, state, epoch }) => {
    this.#fence(epoch);
    this.log.push(`${state} ${version}`);
    this.published = version;
    const applied = { min: version, max: version, by_replica: {} };
    return { published: version, applied, epoch, generation: 0, versions: [] };
  };

  #fence(epoch: number): void {
    if (epoch !== this.#epoch) throw refusal(409, "epoch_fenced", { epoch: this.#epoch });
  }

  async #batch(step: number) {
    const made = this.#batches.get(step) ?? (await handMadeBatch(step));
    this.#batches.set(step, made);
    return made;
  }
}
