/** Calls the paths of a deployment that only a holder of its ROLLCALL_SECRET can call (src/backup, src/operator). */
import { hkdfSync } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import type * as z from "zod";
import { BACKUP_PATH, FILE_SIZE } from "../../backup/wire.ts";
import { ApiError } from "../../contract/api-error.ts";
import { StepFailed } from "./step-failed.ts";

const TRIES = 6;
const FIRST_WAIT_MS = 500;
const SERVER_ERROR = 500;
const NOT_FOUND = 404;

type Query = Readonly<Record<string, string | number>>;

interface Sent {
  readonly method: "GET" | "POST" | "PUT";
  readonly body?: string | Uint8Array<ArrayBuffer>;
}

export class OperatorClient {
  readonly url: string;
  readonly #token: string;
  readonly #signal: AbortSignal;
  readonly #base: string;

  /** `base`: what all paths of the exchange begin with. */
  constructor(url: string, secret: string, signal: AbortSignal, base = BACKUP_PATH) {
    this.url = url;
    this.#base = base;
    this.#token = Buffer.from(hkdfSync("sha256", Buffer.from(secret, "hex"), "", "operator", 32)).toString("base64url");
    this.#signal = signal;
  }

  async read<Schema extends z.ZodType>(path: string, query: Query, schema: Schema): Promise<z.output<Schema>> {
    return schema.parse(await (await this.#call(path, query, { method: "GET" })).json());
  }

  /** A part of a file, and the size of the whole. Null if the deployment does not have it any more. */
  async part(key: string, offset: number): Promise<{ bytes: Uint8Array<ArrayBuffer>; size: number } | null> {
    const reply = await this.#send("/file", { key, offset }, { method: "GET" });
    if (reply.status === NOT_FOUND) {
      await reply.body?.cancel();
      return null;
    }
    const bytes = new Uint8Array(await (await this.#checked(reply)).arrayBuffer());
    return { bytes, size: Number(reply.headers.get(FILE_SIZE)) };
  }

  async write(path: string, query: Query, body?: object): Promise<void> {
    await this.#call(path, query, { method: "POST", ...(body !== undefined && { body: JSON.stringify(body) }) });
  }

  /** Writes, and reads the reply. */
  async ask<Schema extends z.ZodType>(path: string, query: Query, body: object | undefined, schema: Schema) {
    const sent = { method: "POST", ...(body !== undefined && { body: JSON.stringify(body) }) } as const;
    return schema.parse(await (await this.#call(path, query, sent)).json());
  }

  async put(path: string, query: Query, body: Uint8Array<ArrayBuffer>): Promise<Response> {
    return await this.#call(path, query, { method: "PUT", body });
  }

  async #call(path: string, query: Query, sent: Sent): Promise<Response> {
    return await this.#checked(await this.#send(path, query, sent));
  }

  /** Tries again if nothing answered, or the answer was an error of the server. Each call may be repeated. */
  async #send(path: string, query: Query, { method, body }: Sent): Promise<Response> {
    const url = new URL(`${this.#base}${path}`, this.url);
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, String(value));
    const headers = { authorization: `Bearer ${this.#token}` };
    for (let tries = 1; ; tries += 1) {
      try {
        const reply = await fetch(url, {
          ...{ method, headers, redirect: "manual", signal: this.#signal },
          ...(body !== undefined && { body }),
        });
        if (reply.status < SERVER_ERROR || tries === TRIES) return reply;
        await reply.body?.cancel();
      } catch (thrown) {
        this.#signal.throwIfAborted();
        if (tries === TRIES) throw new StepFailed(`${this.url} does not answer`, { cause: thrown });
      }
      await wait(FIRST_WAIT_MS * 2 ** (tries - 1), undefined, { signal: this.#signal });
    }
  }

  async #checked(reply: Response): Promise<Response> {
    if (reply.ok) return reply;
    const text = await reply.text();
    const error = ApiError.safeParse(jsonOf(text));
    if (reply.status === NOT_FOUND && new URL(reply.url).pathname === this.#base) {
      throw new StepFailed(
        `${this.url} has no ${this.#base} for this ROLLCALL_SECRET: its secret is another, or its release is older than this one`,
      );
    }
    const said = error.success ? error.data.error.message : text.slice(0, 200);
    throw new StepFailed(`${this.url} answered ${reply.status}: ${said}`);
  }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (thrown) {
    if (thrown instanceof SyntaxError) return null;
    throw thrown;
  }
}
