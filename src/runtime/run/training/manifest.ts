/**
 * A batch as it lies in R2: the credits of its samples, and the manifest that names its objects by digest. Both are made
 * from rows alone, so that whoever makes them again after a kill makes the same bytes. No token of a batch passes here.
 */
import { estimatorOf } from "../../../core/training/advantage.ts";
import { type CreditLine, creditText, manifestOf } from "../../../core/training/batch.ts";
import type { TrainingSpec } from "../../contract/training-wire.ts";
import type { RunSpec } from "../../contract/wire.ts";
import { batchKeys } from "../../kit/names.ts";
import { sha256Hex } from "../../kit/secrets.ts";
import type { Subrequests } from "../../kit/subrequests.ts";
import type { Credit, Made, TrainBatch, TrainGroup } from "../training-state.ts";

/** Writes both, the manifest last. What the batch's row is to say then. */
export async function writeBatch(
  env: Env,
  spec: RunSpec,
  asked: TrainingSpec,
  { step, generation, batch_id }: TrainBatch,
  groups: readonly TrainGroup[],
  subrequests: Subrequests,
): Promise<{ sha256: string; manifest_key: string }> {
  const { manifest_key, credits_key } = batchKeys(spec.scope, spec.run_id, batch_id);
  const made = groups.map((group) => ({ made: madeOf(group), credits: creditsOf(group) }));
  const credits = creditText(made.flatMap(creditLines));
  const manifest = await manifestOf(
    {
      run_id: spec.run_id,
      step,
      generation,
      estimator: estimatorOf(asked.advantage, asked.length_penalty),
      environment: `${spec.environment.id}@${spec.environment.version}`,
      model: spec.model,
      sampling: asked.sampling ?? spec.sampling,
      groups: made.map(({ made: { object, samples } }) => ({ object, samples })),
      credits: { sha256: sha256Hex(credits), bytes: new TextEncoder().encode(credits).length },
    },
    digestOf,
  );
  await subrequests.fetch(() => env.STORE.put(credits_key, credits));
  await subrequests.fetch(() => env.STORE.put(manifest_key, JSON.stringify(manifest)));
  return { sha256: manifest.sha256, manifest_key };
}

type MadeObject = Made & { readonly object: NonNullable<Made["object"]> };

function madeOf({ group_index, made }: TrainGroup): MadeObject {
  const { object, samples } = JSON.parse(made ?? "{}") as Made;
  if (object === null || object === undefined) {
    throw new Error(`group ${group_index} was shipped and has no samples`);
  }
  return { object, samples };
}

function creditsOf({ credits }: TrainGroup): Readonly<Record<string, Credit>> {
  return JSON.parse(credits ?? "{}") as Record<string, Credit>;
}

function creditLines({
  made,
  credits,
}: {
  readonly made: Made;
  readonly credits: Readonly<Record<string, Credit>>;
}): CreditLine[] {
  return made.samples.flatMap(({ sample_id, rollout_id }): CreditLine[] => {
    const credit = credits[rollout_id];
    return credit === undefined ? [] : [{ sample_id, ...credit }];
  });
}

async function digestOf(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", bytes);
  return Buffer.from(digest).toString("hex");
}
