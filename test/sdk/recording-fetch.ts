/** A `fetch` with scripted replies, which records its requests and never waits. */
import { type ClientOptions, RollcallClient } from "../../src/sdk/client.ts";

export interface Asked {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  readonly headers: Headers;
  readonly body: BodyInit | null;
  readonly signal: AbortSignal | null;
}

export type Answer = (asked: Asked, index: number) => Response | Promise<Response>;

export interface Recorded {
  readonly client: RollcallClient;
  readonly asked: Asked[];
  /** Milliseconds of each wait between two attempts; the waits are skipped. */
  readonly waits: number[];
}

export function recorded(answer: Answer, options: Partial<ClientOptions> = {}): Recorded {
  const asked: Asked[] = [];
  const waits: number[] = [];
  const client = new RollcallClient({
    baseUrl: "https://rollcall.test/",
    apiKey: "rk_test",
    random: () => 0,
    pause: async (ms, signal) => {
      waits.push(ms);
      signal?.throwIfAborted();
    },
    fetch: async (input, init = {}) => {
      const url = new URL(String(input));
      const request: Asked = {
        method: init.method ?? "GET",
        path: url.pathname + url.search,
        headers: new Headers(init.headers),
        body: init.body ?? null,
        signal: init.signal ?? null,
      };
      asked.push(request);
      return await answer(request, asked.length - 1);
    },
    ...options,
  });
  return { client, asked, waits };
}

export function refusal(status: number, code: string, headers: Readonly<Record<string, string>> = {}): Response {
  const error = { code, message: `it is ${code}`, param: null, type: "some_error" };
  return Response.json({ error }, { status, headers });
}

export async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}
