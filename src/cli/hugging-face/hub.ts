/**
 * Reads from Hugging Face over HTTP. Source: the Hub API, https://huggingface.co/docs/hub/api. `HF_ENDPOINT` names
 * another server with the same API, `HF_TOKEN` the user's token; the token is sent to that server only.
 *
 * Invariant: this is the one place that retries such a request: after a broken connection, 408, 429 and 5xx.
 */
import { setTimeout as timer } from "node:timers/promises";
import * as z from "zod";
import { CommandError, unreachable, usageError } from "../exit.ts";
import { refusalError } from "./refusal.ts";

export interface HubOptions {
  readonly endpoint: string;
  readonly token: string | null;
  readonly signal: AbortSignal;
  /** Waits before a retry, in milliseconds; default: a timer. */
  readonly pause?: ((ms: number, signal: AbortSignal) => Promise<void>) | undefined;
}

const PUBLIC = "https://huggingface.co";
/** Attempts without any progress. */
export const MAX_ATTEMPTS = 6;
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 8000;
const LONGEST_RETRY_AFTER_MS = 60_000;
const MAX_JSON_BYTES = 32 * 1024 * 1024;
const MAX_MESSAGE = 300;
const RETRIED = new Set([408, 429, 500, 502, 503, 504]);

/** The endpoint and the token of the environment variables. */
export function hubSettings(env: Readonly<Record<string, string | undefined>>) {
  const endpoint = (env["HF_ENDPOINT"] || PUBLIC).replace(/\/+$/, "");
  if (!/^https?:$/.test(URL.parse(endpoint)?.protocol ?? "")) {
    throw usageError(`HF_ENDPOINT: ${endpoint} is not an http or https URL`);
  }
  return { endpoint, token: env["HF_TOKEN"]?.trim() || null };
}

export class Hub {
  readonly endpoint: string;
  readonly signal: AbortSignal;
  readonly #options: HubOptions;

  constructor(options: HubOptions) {
    this.endpoint = options.endpoint;
    this.signal = options.signal;
    this.#options = options;
  }

  /** A JSON reply to a path of the API; null if the reply is a status of `absent`. */
  async json<T>(path: string, schema: z.ZodType<T>, what: string, absent: readonly number[] = []): Promise<T | null> {
    for (let attempt = 1; ; attempt += 1) {
      const reply = await this.open(path, {}, what, absent);
      if (reply === null) return null;
      try {
        return parsedReply(schema, await this.#text(reply, what), what);
      } catch (error) {
        if (error instanceof CommandError) throw error;
        await this.waitAfter(error, attempt, what);
      }
    }
  }

  /**
   * A reply of status 2xx, with its body unread; null if it is a status of `absent`. Redirects are followed, without the
   * token if they lead to another server. `what` is named in errors: `hf:owner/name`.
   */
  async open(
    pathOrUrl: string,
    headers: Readonly<Record<string, string>>,
    what: string,
    absent: readonly number[] = [],
  ): Promise<Response | null> {
    const url = this.urlOf(pathOrUrl);
    for (let attempt = 1; ; attempt += 1) {
      try {
        const reply = await fetch(url, { headers: { ...this.#authorization(url), ...headers }, signal: this.signal });
        if (reply.ok) return reply;
        if (!RETRIED.has(reply.status)) {
          await reply.body?.cancel();
          if (absent.includes(reply.status)) return null;
          throw this.#refusal(reply, what);
        }
        const failure = new RetriedStatus(reply.status, await messageOf(reply), retryAfterMs(reply));
        await this.waitAfter(failure, attempt, what);
      } catch (error) {
        if (error instanceof CommandError) throw error;
        await this.waitAfter(error, attempt, what);
      }
    }
  }

  /** Waits before the next attempt, or throws if there were enough of them. `attempt` counts from 1. */
  async waitAfter(error: unknown, attempt: number, what: string): Promise<void> {
    this.signal.throwIfAborted();
    const asked = error instanceof RetriedStatus ? error.afterMs : 0;
    if (attempt >= MAX_ATTEMPTS || asked > LONGEST_RETRY_AFTER_MS) {
      throw unreachable(`${what}: ${this.endpoint} does not answer`, error);
    }
    const ms = Math.max(asked, Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (attempt - 1)));
    const { pause = (time, signal) => timer(time, undefined, { signal }) } = this.#options;
    await pause(ms, this.signal);
  }

  /** Files of the parquet conversion are named with the public address; a mirror has them under its own. */
  urlOf(pathOrUrl: string): string {
    if (pathOrUrl.startsWith("/")) return this.endpoint + pathOrUrl;
    return pathOrUrl.startsWith(`${PUBLIC}/`) ? this.endpoint + pathOrUrl.slice(PUBLIC.length) : pathOrUrl;
  }

  #authorization(url: string): Readonly<Record<string, string>> {
    const { token } = this.#options;
    const isOwn = URL.parse(url)?.origin === URL.parse(this.endpoint)?.origin;
    return token !== null && isOwn ? { authorization: `Bearer ${token}` } : {};
  }

  async #text(reply: Response, what: string): Promise<string> {
    const parts: Uint8Array[] = [];
    let length = 0;
    for await (const part of reply.body ?? []) {
      length += part.length;
      if (length > MAX_JSON_BYTES) throw usageError(`${what}: the reply is longer than ${MAX_JSON_BYTES} bytes`);
      parts.push(part);
    }
    return Buffer.concat(parts).toString();
  }

  #refusal(reply: Response, what: string): CommandError {
    const said = (reply.headers.get("x-error-message") ?? "").slice(0, MAX_MESSAGE);
    const code = reply.headers.get("x-error-code");
    const hasToken = this.#options.token !== null;
    return refusalError({ status: reply.status, code, said, hasToken, endpoint: this.endpoint, what });
  }
}

class RetriedStatus extends Error {
  readonly afterMs: number;
  constructor(status: number, message: string, afterMs: number) {
    super(message === "" ? `it answered ${status}` : `it answered ${status}: ${message}`);
    this.afterMs = afterMs;
  }
}

function parsedReply<T>(schema: z.ZodType<T>, text: string, what: string): T {
  try {
    return schema.parse(JSON.parse(text));
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof z.ZodError) {
      throw unreachable(`${what}: HF_ENDPOINT does not answer as Hugging Face does`, error);
    }
    throw error;
  }
}

async function messageOf(reply: Response): Promise<string> {
  const header = reply.headers.get("x-error-message");
  await reply.body?.cancel();
  return (header ?? "").slice(0, MAX_MESSAGE);
}

function retryAfterMs(reply: Response): number {
  const seconds = Number(reply.headers.get("retry-after"));
  return Number.isFinite(seconds) && seconds > 0 ? seconds * 1000 : 0;
}
