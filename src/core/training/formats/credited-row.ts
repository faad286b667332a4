/**
 * A row of a batch together with what it is worth, and where it stands in the batch: what every trainer's own format is
 * made of. What the batch's credits say wins over what the row says itself.
 */
import type { CreditLine } from "../batch.ts";
import type { SampleRow } from "../sample-row.ts";

/** Where a row stands: all count from 0. */
export interface RowPlace {
  /** Of the batch's rows. */
  readonly index: number;
  /** Which of the batch's groups it is of. */
  readonly group: number;
  /** Which of the group's rollouts it is of; branches of one rollout share it. */
  readonly member: number;
}

export interface PlacedRow extends RowPlace {
  readonly row: SampleRow;
  /** Null: none was produced. */
  readonly reward: number | null;
  /** Of the whole row; null: the run computes none, so the trainer does. */
  readonly advantage: number | null;
}

export interface CreditedRow extends PlacedRow {
  /** Whether it is the last row of its rollout: branches of one rollout follow one another. */
  readonly last: boolean;
}

/** `credit` undefined: the batch has none, and the row's own figures count. */
export function creditRow(row: SampleRow, credit: CreditLine | undefined, place: RowPlace): PlacedRow {
  const { reward = null, advantage = null } = credit ?? row;
  return { row, reward, advantage, ...place };
}

/** The rows, each with whether it is the last of its rollout. One row is held back for that. */
export async function* markLastRows(rows: AsyncIterable<PlacedRow>): AsyncGenerator<CreditedRow> {
  let held: PlacedRow | null = null;
  for await (const next of rows) {
    if (held !== null) yield { ...held, last: held.row.rollout_id !== next.row.rollout_id };
    held = next;
  }
  if (held !== null) yield { ...held, last: true };
}

/** For each token what it is worth; 0 where nothing was sampled. */
export function tokenAdvantages({ row, advantage }: CreditedRow): number[] {
  return Array.from(row.mask, (bit, at) => (bit === 1 ? (advantage ?? row.advantages?.[at] ?? 0) : 0));
}

/** Where the prompt ends: the first token that was sampled. Rows that train have one. */
export function firstSampled({ mask }: SampleRow): number {
  return mask.indexOf(1);
}

/** The number of the row's branch in its rollout; -1 for a row whose id names none. */
export function branchOf({ sample_id, rollout_id }: SampleRow): number {
  const [, branch] = /^\.(\d{1,9})$/.exec(sample_id.slice(rollout_id.length)) ?? [];
  return sample_id.startsWith(rollout_id) && branch !== undefined ? Number(branch) : -1;
}

const FNV_OFFSET = 0xcbf29ce484222325n;
const FNV_PRIME = 0x100000001b3n;

/** The same whole number for the same id, at most 2^53 - 1: FNV-1a of 64 bits, of which the lowest 53 are kept. */
export function stableNumber(id: string): number {
  let hash = FNV_OFFSET;
  for (let at = 0; at < id.length; at += 1) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(id.charCodeAt(at))) * FNV_PRIME);
  }
  return Number(BigInt.asUintN(53, hash));
}
