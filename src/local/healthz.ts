/** What a platform says of itself: it works, something is wrong with it, or nothing at all within 2 s. */
export type Health = "ok" | "unwell" | "silent";

/** It answers that its disk is full: it is there, and goes on when there is room. */
const STORAGE_FULL = 503;

export async function healthOf(url: string): Promise<Health> {
  try {
    const reply = await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(2000) });
    await reply.arrayBuffer();
    return reply.ok || reply.status === STORAGE_FULL ? "ok" : "unwell";
  } catch (error) {
    // Nothing listens, the connection broke or the time is up: it does not answer.
    if (error instanceof TypeError || error instanceof DOMException) return "silent";
    throw error;
  }
}

/** True when the platform at this address answers. */
export async function answersHealthz(url: string): Promise<boolean> {
  return (await healthOf(url)) === "ok";
}
