/**
 * prime-rl's `MicroBatch`: a list per rank, in msgpack, each an array of 20 values by position.
 *
 * The schema has no version number; this is the one of prime-rl at 0f59b24, whose positions 0 to 15 are those of
 * 559b447. Two recorded messages are reproduced byte by byte in the tests. Values that a row cannot have (routed
 * experts, images, sampling masks, handles) are nil. A decoder with fewer positions ignores the rest.
 */
import { Encoder } from "@msgpack/msgpack";
import { branchOf, type CreditedRow, tokenAdvantages, tokenWeights } from "./credited-row.ts";

const FIELDS = 20;
const PADDING_ID = 1;

/** The default of a stream for rows that do not have it, if another row of the pack does. */
const STREAMS = { ref_logprobs: 0, rl_weights: 1, ce_weights: 0, ref_kl_weights: 0 } as const;
type Stream = keyof typeof STREAMS;

/** Columns, with a value per token or per packed row; null: none of the rows has it. */
export interface MicroBatch {
  readonly input_ids: number[];
  readonly loss_mask: boolean[];
  readonly advantages: number[];
  readonly inference_logprobs: number[];
  readonly position_ids: number[];
  readonly sequence_lengths: number[];
  readonly temperatures: number[];
  readonly env_names: string[];
  readonly streams: Readonly<Record<Stream, number[] | null>>;
  readonly trace_ids: string[] | null;
  readonly branch_indices: number[] | null;
}

/** For a rank with too few micro batches: `padTo` tokens of padding, none of which trains. */
export function dummyOf(padTo: number): MicroBatch {
  const padding = <T>(filler: T): T[] => new Array<T>(padTo).fill(filler);
  return {
    input_ids: padding(PADDING_ID),
    loss_mask: padding(false),
    advantages: padding(0),
    inference_logprobs: padding(0),
    position_ids: upTo(padTo),
    sequence_lengths: [padTo],
    temperatures: padding(1),
    env_names: padding(""),
    streams: { ref_logprobs: null, rl_weights: null, ce_weights: null, ref_kl_weights: null },
    trace_ids: null,
    branch_indices: null,
  };
}

/** Concatenates at least one row, each cut to `seq_len`, and pads to a multiple of `padTo` tokens. */
export function packed(
  rows: readonly CreditedRow[],
  { seq_len, padTo }: { seq_len: number; padTo: number },
): MicroBatch {
  const lengths = rows.map(({ row }) => Math.min(row.token_ids.length, seq_len));
  const tokens = lengths.reduce((sum, length) => sum + length, 0);
  const padding = (padTo - (tokens % padTo)) % padTo;
  const column = <T>(of: (credited: CreditedRow) => ArrayLike<T>, filler: T): T[] => {
    const values = rows.flatMap((credited, at) => Array.from(of(credited)).slice(0, lengths[at]));
    return [...values, ...new Array<T>(padding).fill(filler)];
  };
  const stream = (name: Stream) => {
    const of = (credited: CreditedRow) => (name === "rl_weights" ? tokenWeights(credited) : credited.row[name]);
    if (rows.every((credited) => of(credited) === undefined)) return null;
    const filled = (length: number) => new Array<number>(length).fill(STREAMS[name]);
    return column((credited) => of(credited) ?? filled(credited.row.token_ids.length), 0);
  };
  // Padding counts as part of the last row, though its positions start again.
  const sequence_lengths = lengths.map((length, at) => (at === lengths.length - 1 ? length + padding : length));
  return {
    input_ids: column(({ row }) => row.token_ids, PADDING_ID),
    loss_mask: column(({ row }) => Array.from(row.mask, (bit) => bit === 1), false),
    advantages: column(tokenAdvantages, 0),
    inference_logprobs: column(({ row }) => row.logprobs, 0),
    position_ids: [...lengths.flatMap(upTo), ...upTo(padding)],
    sequence_lengths,
    temperatures: column(({ row }) => new Array<number>(row.token_ids.length).fill(row.temperature), 1),
    env_names: column(({ row }) => new Array<string>(row.token_ids.length).fill(row.env), ""),
    streams: {
      ...{ ref_logprobs: stream("ref_logprobs"), rl_weights: stream("rl_weights") },
      ...{ ce_weights: stream("ce_weights"), ref_kl_weights: stream("ref_kl_weights") },
    },
    trace_ids: rows.map(({ row }) => row.rollout_id),
    branch_indices: rows.map(({ row }) => branchOf(row)),
  };
}

function upTo(length: number): number[] {
  return Array.from({ length }, (_, at) => at);
}

/** The header of a message with so many micro batches. */
export function listHeader(count: number): Uint8Array<ArrayBuffer> {
  if (count < 16) return Uint8Array.of(0x90 | count);
  return count < 0x10000
    ? Uint8Array.of(0xdc, count >> 8, count & 0xff)
    : Uint8Array.of(0xdd, count >>> 24, (count >> 16) & 0xff, (count >> 8) & 0xff, count & 0xff);
}

/** Encodes one micro batch value by value: at most one encoded column is in memory. */
export function* encodeMicroBatch(batch: MicroBatch): Generator<Uint8Array<ArrayBuffer>> {
  // Floats are always encoded as floats, even whole numbers: the decoder accepts nothing else.
  const [plain, float] = [new Encoder(), new Encoder({ forceIntegerToFloat: true })];
  const { ref_logprobs, rl_weights, ce_weights, ref_kl_weights } = batch.streams;
  yield listHeader(FIELDS);
  for (const [encoder, value] of [
    [plain, batch.input_ids],
    [plain, batch.loss_mask],
    [float, batch.advantages],
    [float, batch.inference_logprobs],
    [plain, batch.position_ids],
    [plain, batch.sequence_lengths],
    [float, batch.temperatures],
    [plain, batch.env_names],
    [plain, batch.sequence_lengths],
    [float, ref_logprobs],
    // Routed experts, images, and the types of their tokens.
    ...[null, null, null].map((nil) => [plain, nil] as const),
    [float, rl_weights],
    [float, ce_weights],
    [float, ref_kl_weights],
    // The sampling mask.
    [plain, null],
    [plain, batch.trace_ids],
    [plain, batch.branch_indices],
    // Handles to arrays outside of the message.
    [plain, null],
  ] as const) {
    yield encoder.encode(value);
  }
}
