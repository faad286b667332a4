/**
 * A call that somebody else can make pointless while it is under way, and who cannot reach whoever makes it: so the one
 * who makes it looks from time to time. A call that hangs would else keep its place from the calls of others.
 */

/** The first wait before a look; each one after it is twice as long, up to a minute. */
export const FIRST_LOOK_MS = 5_000;

const LONGEST_WAIT_MS = 60_000;

export async function hangUpOnceOver<T>(
  makeCall: (controller: AbortController) => Promise<T>,
  isOver: () => Promise<boolean>,
  firstLookMs: number,
): Promise<T> {
  const controller = new AbortController();
  let timer: ReturnType<typeof setTimeout> | null = null;
  const lookIn = (ms: number) => {
    timer = setTimeout(async () => {
      if (await isOver()) controller.abort();
      // The call may have come back meanwhile.
      else if (timer !== null) lookIn(Math.min(LONGEST_WAIT_MS, 2 * ms));
    }, ms);
  };
  lookIn(firstLookMs);
  try {
    return await makeCall(controller);
  } finally {
    if (timer !== null) clearTimeout(timer);
    timer = null;
  }
}
