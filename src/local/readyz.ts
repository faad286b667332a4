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

interface Question {
  readonly path: string;
  readonly method: string;
  /** The status of the answer that is waited for. */
  readonly wanted: number;
}

const READINESS: Question = { path: "/readyz", method: "GET", wanted: 200 };

/**
 * Waits until the platform is ready. Throws NotReady after `waitMs`, or the signal's reason. A new address may take a
 * minute until it resolves.
 */
export function waitUntilReady(url: string, wait: Wait): Promise<void> {
  return waitFor(`${url} is not ready`, READINESS, url, wait);
}

/** Waits until the version without the bootstrap token is served. Sends no token, so nothing is created. */
export function waitUntilClosed(url: string, wait: Wait): Promise<void> {
  const unmet = `the bootstrap route of ${url} is still open`;
  return waitFor(unmet, { path: "/v1/bootstrap", method: "POST", wanted: 404 }, url, wait);
}

async function waitFor(unmet: string, question: Question, url: string, { waitMs, signal, log }: Wait): Promise<void> {
  const until = performance.now() + waitMs;
  for (let before: string | null = null; ; ) {
    const answer = await ask(url, question, signal);
    if (answer === null) return;
    if (performance.now() >= until) {
      throw new NotReady(`${unmet} after ${Math.round(waitMs / 1000)} s: ${answer}`);
    }
    if (answer !== before) log(`${unmet}: ${answer}`);
    before = answer;
    await sleep(ASK_EVERY_MS, undefined, { signal });
  }
}

/** "ready", or the answer in words. */
export async function askReadiness(url: string, signal: AbortSignal): Promise<string> {
  return (await ask(url, READINESS, signal)) ?? "ready";
}

/** Null for the wanted answer; another one in words. */
async function ask(url: string, { path, method, wanted }: Question, signal: AbortSignal): Promise<string | null> {
  try {
    const within = AbortSignal.any([signal, AbortSignal.timeout(ANSWERS_WITHIN_MS)]);
    const reply = await fetch(new URL(path, url), { method, signal: within, redirect: "manual" });
    const text = await reply.text();
    return reply.status === wanted ? null : `${path} says ${reply.status} ${text.slice(0, MOST_SHOWN)}`.trim();
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof TypeError || error instanceof DOMException)) throw error;
    const why = error.cause instanceof Error ? error.cause.message : error.message;
    return `${path} got no answer: ${why}`;
  }
}
