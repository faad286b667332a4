/**
 * A batch: a manifest of immutable objects with samples, and a credit for each sample.
 *
 * Invariants. The tokens of a rollout are written when its group is scored. Rewards and advantages are in the credits,
 * one line per sample in the manifest's order, and a sample without a line does not train. The batch's digest is over
 * the raw digests of its objects in order, then of its credits: a reader that checked each object has checked the
 * batch.
 */
import * as z from "zod";
import type { BatchManifest } from "../../contract/trainer-wire.ts";
import type { estimatorOf } from "./advantage.ts";

/** The SHA-256 of bytes, in hex. */
export type Sha256Hex = (bytes: Uint8Array<ArrayBuffer>) => Promise<string>;

export const CREDIT_FORMAT = "rl.credit/1+jsonl";

export const CreditLine = z.object({
  sample_id: z.string(),
  reward: z.number().nullable(),
  advantage: z.number().nullable().describe("null: the trainer computes its own"),
  rubric_digest: z.string().optional(),
  outcome: z.string(),
  weight: z.number().positive().optional().describe("of each trained token of the sample in the loss; absent: 1"),
});
export type CreditLine = z.infer<typeof CreditLine>;

/** The id is derived from the run, its resets so far and the step, so a batch always has the same id. */
export function batchId(runId: string, step: number, generation: number): string {
  return `bat_${runId.replace(/^run_/, "")}_${generation}_${step}`;
}

/** The run in a batch's id, without its prefix; null for any other text. */
export function runOfBatch(id: string): string | null {
  const core = /^bat_([0-9a-z]+)_\d+_\d+$/.exec(id)?.[1];
  return core === undefined ? null : `run_${core}`;
}

export function creditText(credits: readonly CreditLine[]): string {
  const line = ({ sample_id, reward, advantage, rubric_digest, outcome, weight }: CreditLine) =>
    JSON.stringify({ sample_id, reward, advantage, rubric_digest, outcome, weight });
  return credits.map((credit) => `${line(credit)}\n`).join("");
}

/** Throws zod's error, or a SyntaxError. */
export function parseCredits(text: string): CreditLine[] {
  const lines = text.split("\n").filter((line) => line !== "");
  return lines.map((line) => CreditLine.parse(JSON.parse(line)));
}

/** Digests are 64 hex digits; a batch may have no credits. */
export function batchDigest(objects: readonly string[], credits: string | null, sha256Hex: Sha256Hex): Promise<string> {
  const digests = credits === null ? objects : [...objects, credits];
  return sha256Hex(Uint8Array.from(digests.flatMap(bytesOfHex)));
}

function bytesOfHex(digits: string): number[] {
  return (digits.match(/../g) ?? []).map((pair) => Number.parseInt(pair, 16));
}

/** The counts of one sample for the manifest. */
export interface CountedSample {
  readonly rollout_id: string;
  readonly tokens: number;
  readonly trainable_tokens: number;
  readonly policy_version_start: number;
  readonly policy_version_end: number;
}

export interface BatchParts {
  readonly run_id: string;
  readonly step: number;
  readonly generation: number;
  readonly estimator: ReturnType<typeof estimatorOf>;
  /** By member, if members of a group of environments have estimators of their own. */
  readonly estimators?: Readonly<Record<string, ReturnType<typeof estimatorOf>>>;
  readonly environment: string;
  readonly model: string;
  readonly sampling: Readonly<Record<string, unknown>>;
  /** At least one; each with at least one sample. */
  readonly groups: readonly {
    readonly object: { readonly sha256: string; readonly bytes: number; readonly format: string };
    /** In the order of the object's rows. */
    readonly samples: readonly CountedSample[];
  }[];
  readonly credits: { readonly sha256: string; readonly bytes: number };
}

/** Throws RangeError for a batch without any sample that trains. */
export async function manifestOf(parts: BatchParts, sha256Hex: Sha256Hex): Promise<BatchManifest> {
  const samples = parts.groups.flatMap((group) => group.samples);
  if (samples.length === 0) throw new RangeError("the batch has no samples");
  const objects = parts.groups.map(({ object, samples: rows }) => ({
    sha256: object.sha256,
    bytes: object.bytes,
    format: object.format,
    samples: rows.length,
    tokens: sum(rows, ({ tokens }) => tokens),
  }));
  const digests = objects.map(({ sha256 }) => sha256);
  return {
    schema: "rl.batch/1",
    run_id: parts.run_id,
    batch_id: batchId(parts.run_id, parts.step, parts.generation),
    step: parts.step,
    generation: parts.generation,
    train_version: parts.step - 1,
    samples: samples.length,
    rollouts: new Set(samples.map(({ rollout_id }) => rollout_id)).size,
    groups: parts.groups.length,
    tokens: sum(samples, ({ tokens }) => tokens),
    trainable_tokens: sum(samples, ({ trainable_tokens }) => trainable_tokens),
    min_policy_version: samples.reduce(
      (least, { policy_version_start }) => Math.min(least, policy_version_start),
      Number.POSITIVE_INFINITY,
    ),
    max_policy_version: samples.reduce((most, { policy_version_end }) => Math.max(most, policy_version_end), 0),
    estimator: parts.estimator,
    ...(parts.estimators !== undefined && { estimators: { ...parts.estimators } }),
    environment: parts.environment,
    model: parts.model,
    sampling: { ...parts.sampling },
    objects,
    credits: { ...parts.credits, format: CREDIT_FORMAT },
    sha256: await batchDigest(digests, parts.credits.sha256, sha256Hex),
  };
}

function sum<Item>(items: readonly Item[], of: (item: Item) => number): number {
  return items.reduce((total, item) => total + of(item), 0);
}
