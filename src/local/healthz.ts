/**
 * The health of a platform by its `/healthz`. `ok`: it works. `full`: its disk is full, and it continues when there is
 * space. `unwell`: something is wrong. `silent`: no answer within 2 s.
 */
export type Health = "ok" | "full" | "unwell" | "silent";

const STORAGE_FULL = 503;

export async function healthOf(url: string): Promise<Health> {
  try {
    const reply = await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(2000) });
    await reply.arrayBuffer();
    if (reply.status === STORAGE_FULL) return "full";
    return reply.ok ? "ok" : "unwell";
  } catch (error) {
    // Nothing listens, the connection broke, or the time is over.
    if (error instanceof TypeError || error instanceof DOMException) return "silent";
    throw error;
  }
}

export function answers(health: Health): boolean {
  return health === "ok" || health === "full";
}

/** Whether the platform at this address answers. */
export async function answersHealthz(url: string): Promise<boolean> {
  return answers(await healthOf(url));
}
