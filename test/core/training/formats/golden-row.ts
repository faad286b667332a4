/** The rl.sample/1 row with which every format is tested. */

import type { CreditLine } from "../../../../src/core/training/batch.ts";
import { type CreditedRow, creditRow, type RowPlace } from "../../../../src/core/training/formats/credited-row.ts";
import type { SampleRow } from "../../../../src/core/training/sample-row.ts";

export const GOLDEN_ROW: SampleRow = {
  schema: "rl.sample/1",
  sample_id: "s_01",
  rollout_id: "r_01",
  group_id: "g_01",
  env: "math@1",
  token_ids: Int32Array.of(10, 11, 12, 20, 21, 30, 22),
  mask: Uint8Array.of(0, 0, 0, 1, 1, 0, 1),
  logprobs: Float32Array.of(0, 0, 0, -0.5, -0.25, 0, -1),
  advantage: 0.5,
  reward: 1,
  temperature: 1,
  policy_version_start: 3,
  policy_version_end: 4,
  weight_versions: [
    { version: 3, start: 3, end: 5 },
    { version: 4, start: 6, end: 7 },
  ],
};

/** The row at a place of a batch, as the last row of its rollout. */
export function goldenRow(place: RowPlace, credit?: CreditLine, row: SampleRow = GOLDEN_ROW): CreditedRow {
  return { ...creditRow(row, credit, place), last: true };
}

/** A row of `tokens` tokens, the first of them context, with reward 0.5. */
export function creditedRow(tokens: number, more: Partial<SampleRow> = {}): CreditedRow {
  const sampled = Array.from({ length: tokens }, (_, at) => (at === 0 ? 0 : 1));
  const row: SampleRow = {
    ...{ schema: "rl.sample/1", sample_id: "ro_1.0", rollout_id: "ro_1", group_id: "g", env: "e", temperature: 1 },
    ...{ policy_version_start: 0, policy_version_end: 0 },
    token_ids: Int32Array.from(sampled, (_, at) => at + 7),
    mask: Uint8Array.from(sampled),
    logprobs: Float32Array.from(sampled, (bit) => bit * -0.25),
    ...more,
  };
  return { row, reward: 1, advantage: 0.5, weight: 1, index: 0, group: 0, member: 0, last: true };
}
