/**
 * One offer of a batch to the trainer's address: signed, with the manifest in it while that is small. Samples never
 * travel in it. Never throws: what goes wrong here is a trainer that was not reached.
 */
import { type OfferReply, offerBatch } from "../../clients/trainer.ts";
import type { BatchManifest, BatchOffer, LeaseView } from "../../contract/trainer-wire.ts";
import type { ReadyBatch, TrainerSpec } from "../contract/training-wire.ts";
import { refuseAddress } from "../kit/address.ts";
import { sealContext, unseal } from "../kit/secrets.ts";
import { signedHeaders } from "../kit/standard-webhooks.ts";
import { OFFER_TIMEOUT_MS } from "./push-ledger.ts";

/** A longer manifest is fetched by its address. */
const INLINE_BYTES = 20_000;

export interface OfferedBatch {
  readonly batch: ReadyBatch;
  readonly manifest: BatchManifest;
  readonly lease: LeaseView;
  readonly epoch: number;
  readonly now: number;
  /** The way out of the network, replaced by tests. */
  readonly send: ((url: string, init: RequestInit) => Promise<Response>) | undefined;
}

export async function sendOffer(env: Env, spec: TrainerSpec, offered: OfferedBatch): Promise<OfferReply> {
  const { target, scope, run_id, sealed_push_secret } = spec;
  if (target.url === undefined || sealed_push_secret === null) {
    return {
      kind: "absent",
      message: "the run has no address to push to, or no secret to sign with",
    };
  }
  const blocked = refuseAddress(env, target.url, "trainer.url");
  if (blocked !== null) return { kind: "absent", message: `${target.url} may not be called` };
  const { batch, lease, now, send } = offered;
  const secret = await unseal(env.ROLLCALL_SECRET, sealed_push_secret, sealContext(scope, run_id));
  const body = JSON.stringify(offerOf(spec, offered));
  const headers = await signedHeaders(secret, `msg_${batch.batch_id}_${lease.attempt}`, body, now);
  return await offerBatch({ url: target.url, body, headers, timeoutMs: OFFER_TIMEOUT_MS, send });
}

function offerOf({ run_id, base_url }: TrainerSpec, { batch, manifest, lease, epoch, now }: OfferedBatch): BatchOffer {
  const { batch_id, step } = batch;
  const small = new TextEncoder().encode(JSON.stringify(manifest)).byteLength <= INLINE_BYTES;
  const manifest_url = `${base_url}/v1/runs/${run_id}/batches/${step}`;
  return {
    type: "trainer.batch.offer",
    timestamp: new Date(now).toISOString(),
    data: {
      ...{ run_id, batch_id, step, epoch, lease, base_url },
      ...(small ? { manifest } : { manifest_url }),
    },
  };
}
