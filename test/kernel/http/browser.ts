/** A browser in tests: it keeps its cookie, and sends what browsers send with each request. */
import { env } from "cloudflare:workers";
import type { TestApi } from "./test-api.ts";

export interface Browser {
  /** The last cookie that the platform set; empty without one. */
  readonly cookie: () => string;
  readonly keep: (cookie: string) => void;
  /** A request of a page of the platform itself, unless other headers are given. */
  readonly ask: (route: string, body?: unknown, headers?: Readonly<Record<string, string | null>>) => Promise<Response>;
}

/** `origin`: the platform's; `changes`: to its bindings. */
export function openBrowser({ app }: Pick<TestApi, "app">, origin: string, changes: Partial<Env> = {}): Browser {
  let kept = "";
  const ask: Browser["ask"] = async (route, body, given = {}) => {
    const [method = "GET", path = ""] = route.split(" ");
    const headers = withChanges(usualHeaders(method, origin, kept), given);
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    if (body !== undefined) headers.set("content-type", "application/json");
    const reply = await app.request(`${origin}${path}`, { method, headers, ...sent }, { ...env, ...changes });
    const set = reply.headers.get("set-cookie");
    if (set !== null) kept = /Max-Age=0;/.test(set) ? "" : (set.split(";")[0] ?? "");
    return reply;
  };
  const keep = (cookie: string) => {
    kept = cookie;
  };
  return { cookie: () => kept, keep, ask };
}

/** Wrong keys are counted by address, so each browser uses its own. */
function usualHeaders(method: string, origin: string, cookie: string): Headers {
  const headers = new Headers({ "sec-fetch-site": "same-origin", "cf-connecting-ip": crypto.randomUUID() });
  if (method !== "GET") headers.set("origin", origin);
  if (cookie !== "") headers.set("cookie", cookie);
  return headers;
}

function withChanges(headers: Headers, given: Readonly<Record<string, string | null>>): Headers {
  for (const [name, value] of Object.entries(given)) {
    if (value === null) headers.delete(name);
    else headers.set(name, value);
  }
  return headers;
}
