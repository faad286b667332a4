/** Waits until a deployed platform can do its work, by its `/readyz`. */
import { setTimeout as sleep } from "node:timers/promises";

const ASK_EVERY_MS = 1000;
const ANSWERS_WITHIN_MS = 10_000;
/** Of an answer in an error. */
const MOST_SHOWN = 300;

/** The platform was not ready in time. The message has its last answer. */
export class NotReady extends Error {
  override readonly name = "NotReady";
}

interface Wait {
  readonly waitMs: number;
  readonly signal: AbortSignal;
  /** Called with each answer that differs from the one before. */
  readonly log: (line: string) => void;
}

/** Throws NotReady after `waitMs`, or the signal's reason. A new address may take a minute until it resolves. */
export async function waitUntilReady(url: string, { waitMs, signal, log }: Wait): Promise<void> {
  const until = performance.now() + waitMs;
  for (let before = ""; ; ) {
    const answer = await askReadiness(url, signal);
    if (answer === "ready") return;
    if (performance.now() >= until) {
      throw new NotReady(`${url} is not ready after ${Math.round(waitMs / 1000)} s: ${answer}`);
    }
    if (answer !== before) log(`not ready yet: ${answer}`);
    before = answer;
    await sleep(ASK_EVERY_MS, undefined, { signal });
  }
}

/** "ready", or the answer in words. */
export async function askReadiness(url: string, signal: AbortSignal): Promise<string> {
  try {
    const within = AbortSignal.any([signal, AbortSignal.timeout(ANSWERS_WITHIN_MS)]);
    const reply = await fetch(new URL("/readyz", url), { signal: within, redirect: "manual" });
    const text = await reply.text();
    return reply.status === 200 ? "ready" : `/readyz says ${reply.status} ${text.slice(0, MOST_SHOWN)}`.trim();
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof TypeError || error instanceof DOMException)) throw error;
    const why = error.cause instanceof Error ? error.cause.message : error.message;
    return `/readyz got no answer: ${why}`;
  }
}
