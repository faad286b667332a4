/**
 * A reply that is produced while it is read.
 *
 * Invariants. Nothing is produced before its reader takes it. If a reader takes nothing for `LIMITS.bodyPauseMs`, the
 * stream ends with an error, which cuts its reader's connection. `end` is called once, however the stream ends.
 */

import { LIMITS } from "../../contract/limits.ts";
import { type After, inTime } from "../clients/bounded-body.ts";

export interface Pulled {
  /** The next piece; null after the last. An error that it throws ends the stream. */
  readonly next: () => Uint8Array | null | Promise<Uint8Array | null>;
  readonly end: () => unknown;
}

export function pulledStream({ next, end }: Pulled, after: After = inTime): ReadableStream<Uint8Array> {
  let ended = false;
  let disarm: () => void = () => undefined;
  const over = async () => {
    disarm();
    if (ended) return;
    ended = true;
    await end();
  };
  const giveUpLater = (controller: ReadableStreamDefaultController) => {
    disarm = after(LIMITS.bodyPauseMs, () => {
      controller.error(new Error("the client stopped reading this reply"));
      over().catch(() => undefined);
    });
  };
  return new ReadableStream<Uint8Array>(
    {
      start: giveUpLater,
      async pull(controller) {
        disarm();
        try {
          const piece = await next();
          if (piece !== null) {
            controller.enqueue(piece);
            giveUpLater(controller);
            return;
          }
          controller.close();
        } catch (thrown) {
          controller.error(thrown);
        }
        await over();
      },
      cancel: over,
    },
    // Nothing is buffered ahead of the reader.
    { highWaterMark: 0 },
  );
}
