/** Waits until a deployed platform can do its work, by its `/readyz`. */
import { setTimeout as sleep } from "node:timers/promises";
import * as z from "zod";

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

const Draining = z.object({ draining_since: z.number() });

/** Since when the platform starts no rollouts; null if it starts them, or does not say. */
export async function drainingSince(url: string, signal: AbortSignal): Promise<Date | null> {
  const { text } = await fetched(url, READINESS, signal);
  const read = Draining.safeParse(jsonOrNull(text));
  return read.success ? new Date(read.data.draining_since * 1000) : null;
}

/** "ready", or the answer in words. */
export async function askReadiness(url: string, signal: AbortSignal): Promise<string> {
  return (await ask(url, READINESS, signal)) ?? "ready";
}

/** Null for the wanted answer; another one in words. */
async function ask(url: string, question: Question, signal: AbortSignal): Promise<string | null> {
  const { path, wanted } = question;
  const { status, text } = await fetched(url, question, signal);
  if (status === null) return `${path} got no answer: ${text}`;
  return status === wanted ? null : `${path} says ${status} ${text.slice(0, MOST_SHOWN)}`.trim();
}

/** Without an answer the status is null, and the text says why. */
async function fetched(
  url: string,
  { path, method }: Question,
  signal: AbortSignal,
): Promise<{ readonly status: number | null; readonly text: string }> {
  try {
    const within = AbortSignal.any([signal, AbortSignal.timeout(ANSWERS_WITHIN_MS)]);
    const reply = await fetch(new URL(path, url), { method, signal: within, redirect: "manual" });
    return { status: reply.status, text: await reply.text() };
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof TypeError || error instanceof DOMException)) throw error;
    return { status: null, text: error.cause instanceof Error ? error.cause.message : error.message };
  }
}

/** Null if the text is not JSON. */
export function jsonOrNull(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
