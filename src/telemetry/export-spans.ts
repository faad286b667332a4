/**
 * Sends the spans of a segment's rollouts to the deployment's collector, if it has one, after the segment is compacted.
 *
 * Invariants. Nothing depends on it: it never throws, and spans that the collector does not accept are counted, logged
 * and dropped. If the collector is unavailable, this isolate does not call it for a minute, so that at most 11 s of
 * that minute are spent on it. A segment takes at most `MOST_REQUESTS` requests of `SPAN_BYTES` each.
 */

import type { Trajectory } from "../contract/trajectory.ts";
import { databaseOf } from "../kernel/db/database.ts";
import { addTotal } from "../kernel/db/totals.ts";
import { wayOut } from "../kernel/kit/address.ts";
import { idsOf, logError } from "../kernel/kit/log.ts";
import { runObject } from "../kernel/kit/names.ts";
import { sha256Hex } from "../kernel/kit/secrets.ts";
import type { Subrequests } from "../kernel/kit/subrequests.ts";
import type { SegmentTrace } from "../kernel/messages/run-records.ts";
import type { SegmentMessage } from "../kernel/messages/wire.ts";
import { type Collector, headersOf, sendSpans } from "./otlp.ts";
import { rolloutSpans, runSpan, type Span, type SpanOptions } from "./spans.ts";

const MOST_REQUESTS = 16;
const SPAN_BYTES = 1024 * 1024;
const SPANS_AT_ONCE = 1000;
const AWAY_MS = 60_000;

/** Until when the collector is not called. */
let awayUntil = 0;

/** For tests, which share an isolate. */
export function forgetCollector(): void {
  awayUntil = 0;
}

/** `lines`: the segment's lines, if they are at hand; otherwise they are read. */
export async function exportSpans(
  env: Env,
  message: SegmentMessage,
  lines: readonly string[] | null,
  subrequests: Subrequests,
): Promise<void> {
  // An older deployment may lack this variable.
  if ((env.OTLP_ENDPOINT ?? "") === "") return;
  try {
    const run = runObject(env, message.scope, message.run_id);
    const trace = await subrequests.object(() => run.segmentTrace(message.segment));
    if (trace === null) return;
    const known = lines ?? (await linesOf(env, trace.key, subrequests));
    const { dropped, error } = await sendAll(collectorOf(env), trace, known, subrequests, env.OTLP_CONTENT === "true");
    if (dropped === 0) return;
    logError("spans dropped", { ...idsOf(message), segment: message.segment, count: dropped }, new Error(error));
    await subrequests.fetch(() => addTotal(databaseOf(env), "spans_dropped", dropped));
  } catch (thrown) {
    logError("spans cannot be exported", { ...idsOf(message), segment: message.segment }, thrown);
  }
}

function collectorOf(env: Env): Collector {
  return {
    endpoint: env.OTLP_ENDPOINT,
    headers: headersOf(env.OTLP_HEADERS ?? ""),
    send: wayOut(env, null),
    pause: (ms) => scheduler.wait(ms),
  };
}

async function linesOf(env: Env, key: string | null, subrequests: Subrequests): Promise<readonly string[]> {
  if (key === null) return [];
  const object = await subrequests.inTurn(() => env.STORE.get(key));
  return object === null ? [] : (await object.text()).split("\n");
}

async function sendAll(
  collector: Collector,
  trace: SegmentTrace,
  lines: readonly string[],
  subrequests: Subrequests,
  content: boolean,
): Promise<{ readonly dropped: number; readonly error: string }> {
  let [requests, dropped, error] = [0, 0, ""];
  for (const spans of batchesOf(trace, lines, { hash: sha256Hex, content })) {
    const away = Date.now() < awayUntil;
    if (away || requests === MOST_REQUESTS) {
      dropped += spans.length;
      error ||= away ? "the collector was away a moment ago" : `more than ${MOST_REQUESTS} requests for one segment`;
      continue;
    }
    requests += 1;
    const sent = await subrequests.fetch(() => sendSpans(collector, spans));
    dropped += sent.rejected;
    if (sent.error !== null) error ||= sent.error;
    if (sent.away) awayUntil = Date.now() + AWAY_MS;
  }
  return { dropped, error };
}

/** Only one rollout at a time is parsed in memory; the others are text. */
function* batchesOf(trace: SegmentTrace, lines: readonly string[], options: SpanOptions): Generator<readonly Span[]> {
  const texts = new Map(lines.map((line) => [idOf(line), line]));
  let [batch, bytes]: [Span[], number] = [[], 0];
  const run = runSpan(trace, options);
  if (run !== null) batch.push(run);
  for (const entry of trace.rollouts) {
    const line = texts.get(entry.id);
    const { trajectory } =
      line === undefined ? { trajectory: null } : (JSON.parse(line) as { trajectory: Trajectory | null });
    for (const span of rolloutSpans(trace, entry, trajectory, options)) {
      const size = JSON.stringify(span).length;
      if (batch.length === SPANS_AT_ONCE || (batch.length > 0 && bytes + size > SPAN_BYTES)) {
        yield batch;
        [batch, bytes] = [[], 0];
      }
      batch.push(span);
      bytes += size;
    }
  }
  if (batch.length > 0) yield batch;
}

/** The id at the start of a line, as `lineOf` in store.ts writes it. */
function idOf(line: string): string {
  return /^\{"rollout_id":"([^"]*)"/.exec(line)?.[1] ?? "";
}
