/** What a platform says of itself: all is well, something is not, or nothing at all within 2 s. */
export type Health = "ok" | "unwell" | "silent";

export async function healthOf(url: string): Promise<Health> {
  try {
    const reply = await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(2000) });
    await reply.arrayBuffer();
    return reply.ok ? "ok" : "unwell";
  } catch (error) {
    // Nothing listens, the connection broke or the time is up: it does not answer.
    if (error instanceof TypeError || error instanceof DOMException) return "silent";
    throw error;
  }
}

/** True when the platform at this address answers that all is well. */
export async function answersHealthz(url: string): Promise<boolean> {
  return (await healthOf(url)) === "ok";
}
