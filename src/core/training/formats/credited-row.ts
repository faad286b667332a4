/**
 * A row of a batch with its credit and its place in the batch: the input of every trainer's own format. The batch's
 * credits have precedence over the row's own figures.
 */
import type { CreditLine } from "../batch.ts";
import type { SampleRow } from "../sample-row.ts";

/** The place of a row; all numbers are from 0. */
export interface RowPlace {
  /** Index among the batch's rows. */
  readonly index: number;
  /** Index of its group in the batch. */
  readonly group: number;
  /** Index of its rollout in the group; branches of one rollout share it. */
  readonly member: number;
}

export interface PlacedRow extends RowPlace {
  readonly row: SampleRow;
  /** Null: there is none. */
  readonly reward: number | null;
  /** The advantage of the whole row; null: the run computes none, so the trainer does. */
  readonly advantage: number | null;
  /** The weight of each of its trained tokens in the loss. */
  readonly weight: number;
}

export interface CreditedRow extends PlacedRow {
  /** Whether it is the last row of its rollout. Branches of one rollout are consecutive. */
  readonly last: boolean;
}

/** `credit` undefined: the batch has no credits, and the row's own figures count. */
export function creditRow(row: SampleRow, credit: CreditLine | undefined, place: RowPlace): PlacedRow {
  const { reward = null, advantage = null } = credit ?? row;
  return { row, reward, advantage, weight: credit?.weight ?? 1, ...place };
}

/** Marks the last row of each rollout. For this it reads one row ahead. */
export async function* markLastRows(rows: AsyncIterable<PlacedRow>): AsyncGenerator<CreditedRow> {
  let held: PlacedRow | null = null;
  for await (const next of rows) {
    if (held !== null) yield { ...held, last: held.row.rollout_id !== next.row.rollout_id };
    held = next;
  }
  if (held !== null) yield { ...held, last: true };
}

/** The row's weights in the loss, for formats that have them by token: 0 where the mask is 0. */
export function tokenWeights({ row, weight }: PlacedRow): Float32Array<ArrayBuffer> | undefined {
  if (weight === 1) return row.rl_weights;
  return Float32Array.from(row.mask, (bit, at) => bit * weight * (row.rl_weights?.[at] ?? 1));
}

/**
 * The advantage for formats without weights: multiplied by the row's weight. In every loss that is linear in the
 * advantage, or clips the ratio only, that is the same as weighing the loss.
 */
export function weightedAdvantage({ advantage, weight }: PlacedRow): number | null {
  return advantage === null ? null : advantage * weight;
}

/** The advantage of each token; 0 for tokens that were not sampled. */
export function tokenAdvantages({ row, advantage }: CreditedRow): number[] {
  return Array.from(row.mask, (bit, at) => (bit === 1 ? (advantage ?? row.advantages?.[at] ?? 0) : 0));
}

/** The end of the prompt: the index of the first sampled token. Rows that train have one. */
export function firstSampled({ mask }: SampleRow): number {
  return mask.indexOf(1);
}

/** The number of the row's branch in its rollout; -1 if its id has none. */
export function branchOf({ sample_id, rollout_id }: SampleRow): number {
  const [, branch] = /^\.(\d{1,9})$/.exec(sample_id.slice(rollout_id.length)) ?? [];
  return sample_id.startsWith(rollout_id) && branch !== undefined ? Number(branch) : -1;
}

const FNV_OFFSET = 0xcbf29ce484222325n;
const FNV_PRIME = 0x100000001b3n;

/** A stable whole number for an id, at most 2^53 - 1: the lowest 53 bits of the 64-bit FNV-1a hash. */
export function stableNumber(id: string): number {
  let hash = FNV_OFFSET;
  for (let at = 0; at < id.length; at += 1) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(id.charCodeAt(at))) * FNV_PRIME);
  }
  return Number(BigInt.asUintN(53, hash));
}
