/** It answers that its disk is full: it is there, and goes on when there is room. */
const STORAGE_FULL = 503;

/** True when the platform at this address answers. */
export async function answersHealthz(url: string): Promise<boolean> {
  try {
    const reply = await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(2000) });
    await reply.arrayBuffer();
    return reply.ok || reply.status === STORAGE_FULL;
  } catch (error) {
    // Nothing listens, the connection broke or the time is up: it does not answer.
    if (error instanceof TypeError || error instanceof DOMException) return false;
    throw error;
  }
}
