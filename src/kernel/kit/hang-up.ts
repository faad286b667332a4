/**
 * Aborts a call that became pointless while it is in progress. The code that makes it pointless cannot reach the
 * caller, so the caller polls from time to time. Otherwise a hanging call would keep its place from other calls.
 */

/** The first wait before a poll. Each later wait is twice as long, up to a minute. */
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
      // The call may have returned meanwhile.
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
