/**
 * Pages of JSON lines, each of which may be of many megabytes.
 *
 * Invariants. So many pages are held at once in a process, from before they are read to when their last byte is sent: whoever
 * comes meanwhile waits a little, and is told to come again. One whose reader takes nothing for too long is given up.
 */
import { LIMITS } from "../core/limits.ts";
import { type Place, Places } from "../runtime/places.ts";
import { Refusal } from "./errors.ts";
import type { ApiContext } from "./operation.ts";
import { linkToNext } from "./page.ts";

export interface Lines {
  readonly rows: readonly object[];
  /** What the next page comes after; null on the last. */
  readonly next: number | string | null;
}

const pages = new Places(LIMITS.pagesAtOnce, 2 * LIMITS.bodyPauseMs);
/** Sent at once, in bytes or little more than that. */
const PIECE_CHARACTERS = 64 * 1024;

/** What `make` gives as a reply: `Link` where there is more. Throws Refusal where too many pages are being made or read. */
export async function linesReply(
  context: ApiContext,
  make: () => Promise<Lines>,
): Promise<Response> {
  const place = await pages.wait(LIMITS.pageWaitMs);
  if (place === null) throw tooMany();
  try {
    const { rows, next } = await make();
    if (next !== null) context.header("link", linkToNext(context.req.url, next));
    const type = { "content-type": "application/jsonl" };
    return context.body(streamOf(piecesOf(rows), place), 200, type);
  } catch (thrown) {
    place.leave();
    throw thrown;
  }
}

function tooMany(): Refusal {
  const message = `${LIMITS.pagesAtOnce} pages are being read here: ask again`;
  return new Refusal({ code: "rate_limited", message, param: null });
}

function* piecesOf(rows: readonly object[]): Generator<Uint8Array> {
  const encoder = new TextEncoder();
  let text = "";
  for (const row of rows) {
    text += `${JSON.stringify(row)}\n`;
    if (text.length < PIECE_CHARACTERS) continue;
    yield encoder.encode(text);
    text = "";
  }
  if (text !== "") yield encoder.encode(text);
}

/** The pieces, made as they are read. The place is left with the last, or with its reader. */
function streamOf(pieces: Generator<Uint8Array>, place: Place): ReadableStream<Uint8Array> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const end = () => {
    clearTimeout(timer);
    pieces.return(undefined);
    place.leave();
  };
  return new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        clearTimeout(timer);
        const { done, value } = pieces.next();
        if (done) {
          end();
          controller.close();
          return;
        }
        place.stay(Date.now());
        timer = setTimeout(() => {
          end();
          controller.error(new Error("nobody reads this page"));
        }, LIMITS.bodyPauseMs);
        controller.enqueue(value);
      },
      cancel: end,
    },
    { highWaterMark: 1 },
  );
}
