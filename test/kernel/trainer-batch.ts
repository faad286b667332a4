/** A batch in the object store, as a training run's object writes it, for tests of its delivery. */
import { env } from "cloudflare:workers";
import type { Scope } from "../../src/contract/scope.ts";
import type { BatchManifest } from "../../src/contract/trainer-wire.ts";
import { TrainerTarget } from "../../src/contract/training-request.ts";
import { mintRunId } from "../../src/core/ids.ts";
import { batchId, CREDIT_FORMAT } from "../../src/core/training/batch.ts";
import { encodeRows, formatOf, type SampleRow } from "../../src/core/training/sample-row.ts";
import { databaseOf } from "../../src/kernel/db/database.ts";
import { insertRun } from "../../src/kernel/db/runs.ts";
import { batchKeys, sampleKey, trainerObject } from "../../src/kernel/kit/names.ts";
import { minting } from "../../src/kernel/kit/secrets.ts";
import type { ReadyBatch, TrainerRpc } from "../../src/kernel/messages/training-wire.ts";
import { issueTrainer } from "../../src/kernel/service/issue-token.ts";
import { endpointRow, runRow } from "./http/run-rows.ts";

export interface Delivery {
  readonly run_id: string;
  readonly trainer: TrainerRpc;
  readonly token: string;
  readonly push_secret: string | null;
}

/** The trainer's object of a run that was not started. */
export async function openDelivery(
  scope: Scope,
  asked: { target?: object; max_steps?: number; now?: number; fleet?: string } = {},
): Promise<Delivery> {
  const { now = Date.now(), max_steps = 9, fleet } = asked;
  const run_id = mintRunId(minting(env, now));
  const target = TrainerTarget.parse(asked.target ?? {});
  const base_url = "http://platform.test";
  const { secrets, kept, sealed_push_secret } = await issueTrainer(env, scope, run_id, target, base_url, now);
  await insertRun(databaseOf(env), scope, runRow(endpointRow(), { id: run_id, sealed_push_secret }), null);
  const trainer = trainerObject(env, scope, run_id);
  const on = fleet === undefined ? {} : { fleet: { id: fleet } };
  await trainer.create({ scope, run_id, target, max_steps, ...kept, ...on });
  return { run_id, trainer, ...secrets };
}

/** Stores the batch of a step: an object for each of `groups`, with one row of that many tokens. */
export async function storeBatch(
  scope: Scope,
  run_id: string,
  step: number,
  groups: readonly number[] = [3, 5],
): Promise<{ ready: ReadyBatch; manifest: BatchManifest; objects: Uint8Array<ArrayBuffer>[] }> {
  // Groups with equally many tokens are the same object.
  const made = new Map<number, Promise<Uint8Array<ArrayBuffer>>>();
  for (const tokens of groups) {
    if (!made.has(tokens)) made.set(tokens, zipped(encodeRows([row(tokens)], "jsonl")));
  }
  const objects = await Promise.all(
    groups.map((tokens) => made.get(tokens) ?? Promise.reject(new Error("never made"))),
  );
  const named = await Promise.all(
    objects.map(async (bytes, at) => ({
      sha256: await digest(bytes),
      bytes: bytes.byteLength,
      format: formatOf("jsonl"),
      ...{ samples: 1, tokens: groups[at] ?? 0 },
    })),
  );
  const batch_id = batchId(run_id, step, 0);
  const { manifest_key, credits_key } = batchKeys(scope, run_id, batch_id);
  const credits = Uint8Array.from(
    new TextEncoder().encode(
      groups
        .map((at) => `${JSON.stringify({ sample_id: `s${at}`, reward: 1, advantage: 0.5, outcome: "scored" })}\n`)
        .join(""),
    ),
  );
  const manifest: BatchManifest = {
    ...{ schema: "rl.batch/1", run_id, batch_id, step, generation: 0, train_version: step - 1 },
    ...{ samples: groups.length, rollouts: groups.length, groups: groups.length, tokens: 8 },
    ...{ trainable_tokens: 4, min_policy_version: 0, max_policy_version: step - 1 },
    estimator: { name: "mean", version: 1, params: {} },
    ...{ environment: "calculator@1.0.0", model: "policy", sampling: {}, objects: named },
    credits: { sha256: await digest(credits), bytes: credits.byteLength, format: CREDIT_FORMAT },
    sha256: `${step}`.padStart(64, "0"),
  };
  await env.STORE.put(manifest_key, JSON.stringify(manifest));
  await env.STORE.put(credits_key, credits);
  for (const bytes of new Set(objects)) {
    await env.STORE.put(sampleKey(scope, run_id, await digest(bytes)), bytes);
  }
  const { sha256 } = manifest;
  const ready = {
    step,
    generation: 0,
    batch_id,
    sha256,
    manifest_key,
    max_policy_version: step - 1,
  };
  return { ready, manifest, objects };
}

/** The state of the run that the batches belong to. */
export const GOING = { acked_step: 0, paused: false, ended: false };

/** A row of this many tokens, all sampled except the first. */
export function row(tokens: number): SampleRow {
  const sampled = Array.from({ length: tokens }, (_, at) => (at === 0 ? 0 : 1));
  return {
    schema: "rl.sample/1",
    ...{ sample_id: `s${tokens}`, rollout_id: `r${tokens}`, group_id: `g${tokens}` },
    ...{ env: "calculator@1.0.0", temperature: 1, policy_version_start: 0, policy_version_end: 0 },
    token_ids: Int32Array.from(sampled, (_, at) => at + 7),
    mask: Uint8Array.from(sampled),
    logprobs: Float32Array.from(sampled, (one) => one * -0.25),
  };
}

export async function zipped(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

export async function unzipped(bytes: ArrayBuffer): Promise<Uint8Array<ArrayBuffer>> {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

export async function digest(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  return Buffer.from(await crypto.subtle.digest("SHA-256", bytes)).toString("hex");
}
