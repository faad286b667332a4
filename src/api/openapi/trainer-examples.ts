/** What trainers ask and are told, as the reference shows it: one lease of one run. */
import type { Acked, BatchManifest, Leased, Registered, WeightLedger } from "../../contract/trainer-wire.ts";
import { RUN } from "./examples.ts";

export const BATCH_SHA256 = "e5a01fee14e0ed5c48714f22180f25ad8365b53f9779f79dc4a3d7e93963f94a";
const OBJECT_SHA256 = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb";
const BATCH_ID = `bat_${RUN.id.replace(/^run_/, "")}_0_1`;

export const REGISTERED: Registered = {
  epoch: 1,
  next_step: 1,
  published: 0,
  delivery: "pull",
  max_steps: 200,
};

export const MANIFEST: BatchManifest = {
  schema: "rl.batch/1",
  run_id: RUN.id,
  batch_id: BATCH_ID,
  step: 1,
  generation: 0,
  train_version: 0,
  samples: 8,
  rollouts: 8,
  groups: 1,
  tokens: 2710,
  trainable_tokens: 960,
  min_policy_version: 0,
  max_policy_version: 0,
  estimator: { name: "mean", version: 1, params: {} },
  environment: "gsm8k@1.0.0",
  model: "qwen3-4b",
  sampling: { temperature: 1, top_p: 1 },
  objects: [
    {
      sha256: OBJECT_SHA256,
      bytes: 8123,
      format: "rl.sample/1+msgpack+gzip",
      samples: 8,
      tokens: 2710,
    },
  ],
  credits: {
    sha256: "3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d",
    bytes: 912,
    format: "rl.credit/1+jsonl",
  },
  sha256: BATCH_SHA256,
};

export const LEASED: Leased = {
  lease: {
    id: "ls_01ks2h9q4e7mxw3f0tbn8vc5za_1_w7c3nq2e",
    token: "kP2vJx0Zt9cQm4uB7yLw1sHd8fNa3eRg6iTo5jVbXzE",
    expires_at: 1_795_302_900,
    attempt: 1,
  },
  manifest: MANIFEST,
};

export const PROOF = { token: LEASED.lease.token, epoch: 1 };

export const ACKED: Acked = { batch_id: BATCH_ID, step: 1, next_step: 2, published: 0 };

export const CREDIT = { sample_id: "ro_….0", reward: 1, advantage: 0.5, outcome: "scored" };

export const LEDGER: WeightLedger = {
  published: 1,
  applied: { min: 1, max: 1, by_replica: { "gpu-0": 1 } },
  epoch: 1,
  generation: 0,
  versions: [
    {
      id: "wv_01ks2hb3n0m5c8w1r7qj4x9e2zk6f0sd2m",
      version: 1,
      state: "applied",
      label: "step_1",
      location: "s3://weights/1",
      sha256: null,
      at: 1_795_302_060,
    },
  ],
};
