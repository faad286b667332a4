/**
 * Pages of JSON lines, each of which may be of many megabytes.
 *
 * Invariants. So many pages are made at once in a process: whoever comes meanwhile waits a little, and is told to come again. A
 * page that is made waits for its reader in room of its own (src/runtime/kit/places.ts), so that whoever reads slowly keeps no
 * other from being answered. One whose reader takes nothing for too long is given up.
 */
import { LIMITS } from "../contract/limits.ts";
import { Semaphore, type UnreadPage, UnreadPages } from "../runtime/kit/places.ts";
import { Refusal } from "./errors.ts";
import type { ApiContext } from "./operation.ts";
import { linkToNext } from "./page.ts";

export interface Lines {
  readonly rows: readonly object[];
  /** What the next page comes after; null on the last. */
  readonly next: number | string | null;
}

const making = new Semaphore(LIMITS.pagesAtOnce, 2 * LIMITS.bodyPauseMs);
const unread = new UnreadPages(LIMITS.unreadBytes, LIMITS.unreadMs);
/** Sent at once. */
const PIECE_BYTES = 64 * 1024;
const ENCODER = new TextEncoder();

/** What `make` gives as a reply: `Link` where there is more. Throws Refusal where too many pages are being made or read. */
export async function linesReply(context: ApiContext, make: () => Promise<Lines>): Promise<Response> {
  const place = await making.wait(LIMITS.pageWaitMs);
  if (place === null) throw tooMany();
  try {
    const { rows, next } = await make();
    const { now } = context.var;
    const page = await unread.wait([...piecesOf(rows)], LIMITS.pageWaitMs, { now });
    if (page === null) throw tooMany();
    if (next !== null) context.header("link", linkToNext(context.req.url, next));
    return context.body(streamOf(page), 200, { "content-type": "application/jsonl" });
  } finally {
    place.leave();
  }
}

function tooMany(): Refusal {
  const message = "too many pages are being read here: ask again";
  return new Refusal({ code: "rate_limited", message, param: null });
}

/** Copies: a piece that is sent must not keep the others. */
function* piecesOf(rows: readonly object[]): Generator<Uint8Array> {
  for (const text of textsOf(rows)) {
    const bytes = ENCODER.encode(text);
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield bytes.slice(at, at + PIECE_BYTES);
  }
}

/** Lines, several short ones at once. */
function* textsOf(rows: readonly object[]): Generator<string> {
  let text = "";
  for (const row of rows) {
    text += `${JSON.stringify(row)}\n`;
    if (text.length < PIECE_BYTES) continue;
    yield text;
    text = "";
  }
  yield text;
}

/** The page as it is read. A page that is gone before its end ends the stream with an error: a cut connection to its reader. */
function streamOf(page: UnreadPage): ReadableStream<Uint8Array> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const end = () => {
    clearTimeout(timer);
    page.drop();
  };
  const giveUpLater = (controller: ReadableStreamDefaultController) => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      end();
      controller.error(new Error("nobody reads this page"));
    }, LIMITS.bodyPauseMs);
  };
  return new ReadableStream<Uint8Array>(
    {
      start: giveUpLater,
      pull(controller) {
        clearTimeout(timer);
        const piece = page.next();
        if (piece !== null) {
          controller.enqueue(piece);
          giveUpLater(controller);
          return;
        }
        end();
        controller.close();
      },
      cancel: end,
    },
    // Nothing is taken before it is read.
    { highWaterMark: 0 },
  );
}
