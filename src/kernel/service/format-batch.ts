/**
 * Sends a batch in a trainer's own format, produced while it is read.
 *
 * Invariants. Two rows are in memory at a time, plus the credits; for prime-rl also the length of every row and the
 * packed sequences that are not complete yet. LIMITS bounds each of these. Every refusal comes before the first byte.
 * An error after it breaks the reply off, so that a part is never taken for the whole.
 */
import type { FormatQuery, PackingQuery } from "../../contract/batch-format.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { Scope } from "../../contract/scope.ts";
import type { BatchManifest } from "../../contract/trainer-wire.ts";
import { type CreditLine, parseCredits } from "../../core/training/batch.ts";
import { type CreditedRow, creditRow, markLastRows, type PlacedRow } from "../../core/training/formats/credited-row.ts";
import { creditNeeded, formatNamed, type LineFormatName } from "../../core/training/formats/formats.ts";
import { dummyOf, encodeMicroBatch, listHeader, packed } from "../../core/training/formats/micro-batch.ts";
import { packRows, packsOfRank } from "../../core/training/formats/packing.ts";
import { decodeRowStream, RowTooLongError } from "../../core/training/row-stream.ts";
import { formatOf, type SampleRow } from "../../core/training/sample-row.ts";
import { PROCESS_SCHEDULER, stepsOfTokens } from "../kit/fair-scheduler.ts";
import { idsOf, logError } from "../kit/log.ts";
import { batchKeys, sampleKey } from "../kit/names.ts";
import { Subrequests } from "../kit/subrequests.ts";
import { type Result, refuse } from "../messages/refusal.ts";
import { manifestOf, withBatch } from "./read-batch.ts";

export interface FormattedBatch {
  readonly body: ReadableStream<Uint8Array>;
  /** The sha256 of the batch, from its manifest. */
  readonly sha256: string;
  /** How many rows were cut; null for a format that cuts none. */
  readonly cut_rows: number | null;
}

export interface FormatRequest {
  readonly step: number;
  readonly max_wait_s: number;
  readonly query: FormatQuery;
}

/** The rows of a batch, in the manifest's order; a row without the credit that it needs is left out. */
type Rows = () => AsyncGenerator<CreditedRow>;

/** `allowed` is called before each object is read: whether the reader still has the permission. */
export function formatBatch(
  env: Env,
  scope: Scope,
  runId: string,
  { step, max_wait_s, query }: FormatRequest,
  allowed: () => Promise<boolean>,
): Promise<Result<FormattedBatch>> {
  const read = async ({ manifest_key, batch_id }: { manifest_key: string; batch_id: string }) => {
    const manifest = await manifestOf(env, manifest_key);
    const refusal = whyNot(manifest, query);
    if (refusal !== null) return refusal;
    const credits = await readCredits(env, batchKeys(scope, runId, batch_id).credits_key);
    const source = { env, scope, runId, manifest, credits, allowed, subrequests: new Subrequests() };
    const rows: Rows = () => markLastRows(readRows(source, creditNeeded(query.format)));
    const made =
      query.format === "prime-rl" ? await pack(rows, query) : { cut_rows: null, parts: lines(rows, query.format) };
    if ("ok" in made) return made;
    const body = streamOf(made.parts, idsOf({ scope, run_id: runId }));
    return { ok: true as const, value: { body, sha256: manifest.sha256, cut_rows: made.cut_rows } };
  };
  return withBatch<FormattedBatch>(env, scope, runId, step, read, max_wait_s);
}

/** Null if the batch can be sent in this format. */
function whyNot({ estimator, objects, credits }: BatchManifest, { format }: FormatQuery): Result<never> | null {
  if (creditNeeded(format) === "advantage" && estimator.name === "none") {
    const message = `${format} needs advantages, but the run computes none: use a format with rewards`;
    return refuse("invalid_request", message, "format");
  }
  // For prime-rl every object is read twice: first the lengths, then the rows.
  const passes = format === "prime-rl" ? 2 : 1;
  const tokens = objects.reduce((sum, object) => sum + object.tokens, 0);
  const fits =
    objects.length * passes < LIMITS.subrequests &&
    tokens <= LIMITS.formattedTokens &&
    objects.every((object) => object.tokens <= LIMITS.formattedObjectTokens) &&
    credits.bytes <= LIMITS.formattedCreditBytes;
  if (fits) return null;
  const message = `${objects.length} objects with ${tokens} tokens are too many for one ${format} answer: read the stored objects`;
  return refuse("too_large", message, "format");
}

async function readCredits(env: Env, key: string): Promise<ReadonlyMap<string, CreditLine>> {
  const object = await env.STORE.get(key);
  if (object === null) throw new Error(`${key} is missing`);
  return new Map(parseCredits(await object.text()).map((line) => [line.sample_id, line]));
}

interface RowSource {
  readonly env: Env;
  readonly scope: Scope;
  readonly runId: string;
  readonly manifest: BatchManifest;
  readonly credits: ReadonlyMap<string, CreditLine>;
  readonly allowed: () => Promise<boolean>;
  readonly subrequests: Subrequests;
}

async function* readRows(source: RowSource, needs: "advantage" | "reward"): AsyncGenerator<PlacedRow> {
  let index = 0;
  for (const [group, object] of source.manifest.objects.entries()) {
    const members = new Map<string, number>();
    for await (const row of storedRows(source, object)) {
      await PROCESS_SCHEDULER.spend(source.scope.orgId, stepsOfTokens(row.token_ids.length));
      const member = members.get(row.rollout_id) ?? members.size;
      members.set(row.rollout_id, member);
      const credit = source.credits.get(row.sample_id);
      if (credit === undefined) continue;
      const credited = creditRow(row, credit, { index, group, member });
      if (credited[needs] === null) continue;
      yield credited;
      index += 1;
    }
  }
}

/** The rows of one stored object. */
async function* storedRows(
  { env, scope, runId, allowed, subrequests }: RowSource,
  { sha256, format }: BatchManifest["objects"][number],
): AsyncGenerator<SampleRow> {
  if (!(await allowed())) throw new Error("the reader lost its permission");
  const key = sampleKey(scope, runId, sha256);
  const object = await subrequests.fetch(() => env.STORE.get(key));
  if (object === null) throw new Error(`${key} is missing`);
  const encoding = format === formatOf("jsonl") ? "jsonl" : "msgpack";
  const unzipped = object.body.pipeThrough(new DecompressionStream("gzip"));
  yield* decodeRowStream(unzipped, encoding, LIMITS.formattedRowBytes);
}

async function* lines(rows: Rows, name: LineFormatName): AsyncGenerator<Uint8Array> {
  const { line } = formatNamed(name);
  for await (const credited of rows()) yield line(credited);
}

interface Packed {
  readonly cut_rows: number;
  readonly parts: AsyncGenerator<Uint8Array>;
}

async function pack(
  rows: Rows,
  { seq_len, ranks = 1, rank = 0, ...more }: PackingQuery,
): Promise<Packed | Result<never>> {
  const lengths: number[] = [];
  try {
    for await (const { row } of rows()) lengths.push(row.token_ids.length);
  } catch (error) {
    if (!(error instanceof RowTooLongError)) throw error;
    return refuse("too_large", `${error.message}: read the stored objects`, "format");
  }
  const packs = packRows(lengths, { seq_len, openTokens: Math.max(seq_len, LIMITS.packedTokens) });
  const mine = packsOfRank(packs, rank, ranks);
  const cut_rows = lengths.filter((length) => length > seq_len).length;
  return { cut_rows, parts: microBatches(rows, mine, { seq_len, padTo: more.pad_to_multiple_of ?? 1 }) };
}

/** Sends each micro-batch as soon as its last row is read, and the dummies at the end. */
async function* microBatches(
  rows: Rows,
  packs: readonly (readonly number[] | null)[],
  sizes: { seq_len: number; padTo: number },
): AsyncGenerator<Uint8Array> {
  const wanted = new Map(packs.flatMap((pack) => pack?.map((index) => [index, pack] as const) ?? []));
  const begun = new Map<readonly number[], CreditedRow[]>();
  yield listHeader(packs.length);
  for await (const credited of rows()) {
    const pack = wanted.get(credited.index);
    if (pack === undefined) continue;
    const together = begun.get(pack) ?? [];
    begun.set(pack, together);
    together.push(credited);
    if (together.length < pack.length) continue;
    begun.delete(pack);
    yield* encodeMicroBatch(packed(together, sizes));
  }
  for (const pack of packs) if (pack === null) yield* encodeMicroBatch(dummyOf(sizes.padTo));
}

/** Nothing is produced before it is read. */
function streamOf(parts: AsyncGenerator<Uint8Array>, ids: ReturnType<typeof idsOf>): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await parts.next();
          if (done === true) controller.close();
          else controller.enqueue(value);
        } catch (thrown) {
          logError("batch in a format", ids, thrown);
          controller.error(thrown);
        }
      },
      async cancel() {
        await parts.return(undefined);
      },
    },
    { highWaterMark: 0 },
  );
}
