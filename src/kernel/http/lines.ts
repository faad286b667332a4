/**
 * Sends pages of JSON lines, each of which may be many megabytes.
 *
 * Invariants. A page is made only with memory for it: further requests wait briefly and then get a 429. A finished page
 * waits for its reader in separate memory, so a slow reader does not block other requests. Organisations share both
 * (src/kernel/kit/isolate-memory.ts).
 */
import { LIMITS } from "../../contract/limits.ts";
import { type FairScheduler, PROCESS_SCHEDULER, stepsOfText } from "../kit/fair-scheduler.ts";
import { isolateMemory } from "../kit/isolate-memory.ts";
import { pulledStream } from "../kit/pulled-stream.ts";
import { Refusal } from "./errors.ts";
import type { ApiContext } from "./operation.ts";
import { linkToNext } from "./page.ts";
import { sharerOf } from "./strangers.ts";

export interface Lines {
  /** A string is one line or several, with their line ends. */
  readonly rows: readonly (object | string)[];
  /** The position after which the next page begins; null on the last page. */
  readonly next: number | string | null;
}

/** Size of the pieces that are sent. */
const PIECE_BYTES = 64 * 1024;
const ENCODER = new TextEncoder();

/** The reply with the result of `make`, and a `Link` if there is more. Throws Refusal if too many pages are open. */
export async function linesReply(context: ApiContext, make: () => Promise<Lines>): Promise<Response> {
  const org = sharerOf(context);
  const { pages, unread, pageMakingBytes } = isolateMemory(context.env);
  const reservation = await pages.wait(org, LIMITS.pageWaitMs, {}, pageMakingBytes);
  if (reservation === null) throw tooMany();
  try {
    const { rows, next } = await make();
    const { now } = context.var;
    const page = await unread.wait(org, await piecesOf(org, rows), LIMITS.pageWaitMs, { now });
    if (page === null) throw tooMany();
    if (next !== null) context.header("link", linkToNext(context.req.url, next));
    return context.body(pulledStream({ next: () => page.next(), end: () => page.drop() }), 200, {
      "content-type": "application/jsonl",
    });
  } finally {
    reservation.leave();
  }
}

function tooMany(): Refusal {
  const message = "too many pages are being read: try again later";
  return new Refusal({ code: "rate_limited", message, param: null });
}

/** The pieces are copies, so that one piece does not keep the memory of the others. */
export async function piecesOf(
  org: string,
  rows: Lines["rows"],
  scheduler: FairScheduler = PROCESS_SCHEDULER,
): Promise<Uint8Array[]> {
  const pieces: Uint8Array[] = [];
  for (const text of textsOf(rows)) {
    await scheduler.spend(org, stepsOfText(text.length));
    const bytes = ENCODER.encode(text);
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) pieces.push(bytes.slice(at, at + PIECE_BYTES));
  }
  return pieces;
}

/** The lines; several short ones are joined. */
function* textsOf(rows: Lines["rows"]): Generator<string> {
  let text = "";
  for (const row of rows) {
    text += typeof row === "string" ? row : `${JSON.stringify(row)}\n`;
    if (text.length < PIECE_BYTES) continue;
    yield text;
    text = "";
  }
  yield text;
}
