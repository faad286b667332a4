import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { type FetchMeans, guardedFetch } from "../../../src/kernel/kit/guarded-fetch.ts";
import { Subrequests } from "../../../src/kernel/kit/subrequests.ts";
import { requestsOf } from "../platform.ts";
import { script, type Turns } from "../script.ts";

const PUBLIC_ONLY = { ...env, ALLOW_PRIVATE_ENDPOINTS: "false" };
const MIB = new Uint8Array(1024 * 1024);
const KEY = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const url = `${env.MODEL_URL}/chat/completions`;

function means(send?: FetchMeans["send"]): FetchMeans {
  return { hosts: async () => null, now: () => 1_764_000_000_000, secret: () => KEY, ...(send && { send }) };
}

function asking(turns: Turns, headers: Record<string, string> = {}) {
  const model = script(turns);
  const body = JSON.stringify({ model, messages: [] });
  return { model, init: { method: "POST", headers, body } };
}

test("an environment may call only public addresses, unless the deployment permits its own network", async () => {
  const { model, init } = asking(["hello"]);
  for (const address of [url, "http://10.0.0.1/", "http://metadata.internal/", "http://[::1]/"]) {
    await expect(guardedFetch(PUBLIC_ONLY, means())(address, init)).rejects.toThrow(
      /^fetch: url_not_allowed: \S+ is not a public address/,
    );
  }
  expect(await requestsOf(model)).toEqual([]);
  const reply = await guardedFetch(env, means())(url, init);
  expect([reply.status, reply.text]).toEqual([200, expect.stringContaining("hello")]);
});

test("an address that is not a web address is refused", async () => {
  await expect(guardedFetch(env, means())("file:///etc/passwd")).rejects.toThrow(
    "url_not_allowed: file: is not supported",
  );
  await expect(guardedFetch(env, means())("not a url")).rejects.toThrow("is not a URL");
});

test("a redirect is an error with its status, its target and what to do, and the target is not called", async () => {
  for (const status of [301, 302, 303, 307, 308]) {
    const onward = { kind: "status", status, headers: { location: `${url}/?token=theirs` } } as const;
    const { model, init } = asking([{ fault: onward, times: 1, reply: "there" }]);
    await expect(guardedFetch(env, means())(url, init)).rejects.toThrow(
      `${url} answered ${status} and redirects to ${url}/: redirects are not followed. ` +
        "Use that address instead, also where this one is declared (an argument, needs)",
    );
    expect((await requestsOf(model)).length).toBe(1);
  }
});

test("nothing is sent to the target of a redirect, whatever it is", async () => {
  const asked: string[] = [];
  const leading = (location: string) => async (to: URL) => {
    asked.push(to.href);
    return new Response("moved", { status: 302, headers: { location } });
  };
  const onward = [
    ["http://169.254.169.254/latest?t=1", "http://169.254.169.254/latest"],
    ["//localhost/", "https://localhost/"],
    ["/mcp/", "https://search.example.com/mcp/"],
    ["https://me:mine@other.example/", "https://other.example/"],
    ["https://[", "no address"],
  ] as const;
  for (const [location, named] of onward) {
    const guarded = guardedFetch(PUBLIC_ONLY, means(leading(location)));
    await expect(guarded("https://search.example.com/mcp?key=mine")).rejects.toThrow(
      `/mcp answered 302 and redirects to ${named}: redirects`,
    );
  }
  expect(new Set(asked)).toEqual(new Set(["https://search.example.com/mcp?key=mine"]));
});

test("a 3xx status without a target is a reply", async () => {
  const send = async () => new Response(null, { status: 304 });
  expect((await guardedFetch(env, means(send))("https://search.example.com/")).status).toBe(304);
});

test("a request is signed by Standard Webhooks, over its exact body, and its secret is not sent", async () => {
  const sent: RequestInit[] = [];
  const send = async (_to: URL, init: RequestInit) => {
    sent.push(init);
    return new Response("{}");
  };
  const body = '{"type":"batch.ready","timestamp":"2025-11-24T16:00:00.000Z","data":{"id":"b_000042"}}';
  const sign = { secret: "SCORER", id: "msg_000001" };
  await guardedFetch(env, means(send))("https://scorer.example/", { method: "POST", body, sign });
  // The test vector of the specification's libraries: standardwebhooks.com.
  expect(sent[0]?.headers).toEqual({
    "webhook-id": "msg_000001",
    "webhook-timestamp": "1764000000",
    "webhook-signature": "v1,cGBcLWlg8dvesATzcVXOZZryj3pS/bhQHVtHtzB7oa8=",
  });
});

test("a silent server ends the call at the deadline, and an endless reply at its limit", async () => {
  const silent = (_to: URL, { signal }: RequestInit) =>
    new Promise<Response>((_, reject) => {
      signal?.addEventListener("abort", () => reject(signal.reason));
    });
  await expect(guardedFetch(env, means(silent))("https://scorer.example/", { timeoutMs: 5 })).rejects.toThrow(
    "https://scorer.example/ did not answer within 0.005 s",
  );
  const endless = async () => new Response(new ReadableStream({ pull: (to) => to.enqueue(MIB) }));
  await expect(guardedFetch(env, means(endless))("https://scorer.example/")).rejects.toThrow(
    "answered with more than 4194304 bytes",
  );
  const dripping = script([{ fault: { kind: "drip", everyMs: 1 } }]);
  const body = JSON.stringify({ model: dripping, messages: [] });
  await expect(guardedFetch(env, means())(url, { method: "POST", body, timeoutMs: 200 })).rejects.toThrow(
    `${url} did not answer within 0.2 s`,
  );
});

test("independent calls wait for one of the six connections, and all are counted", async () => {
  const subrequests = new Subrequests();
  const open: (() => void)[] = [];
  const calls = Array.from({ length: 10 }, () => subrequests.inTurn(() => new Promise<void>((end) => open.push(end))));
  for (let ended = 0; ended < 10; ended += 1) {
    expect(open.length).toBe(Math.min(10, ended + 6));
    open[ended]?.();
    await calls[ended];
    // The waiting call takes the place once the other has ended.
    await Promise.resolve();
  }
  expect(subrequests.count).toBe(10);
});

test("a reader that has enough closes the connection and gets what came, never more than the limit", async () => {
  const cancelled = Promise.withResolvers<void>();
  const pieces = ["one", "two", "three"].map((text) => new TextEncoder().encode(text));
  const open = () =>
    new ReadableStream({
      pull: (controller) => void controller.enqueue(pieces.shift() ?? MIB),
      cancel: () => cancelled.resolve(),
    });
  const asked: string[] = [];
  const until =
    (enough: (piece: string) => boolean) =>
    (piece: string, { status }: { readonly status: number }) => {
      asked.push(`${status} ${piece.slice(0, 5)}`);
      return enough(piece);
    };
  const get = guardedFetch(
    env,
    means(async (_url, init) => {
      expect(init).not.toHaveProperty("until");
      return new Response(open(), { status: 201 });
    }),
  );
  const reply = await get(url, { until: until((piece) => piece === "two") });
  expect([reply.text, asked]).toEqual(["onetwo", ["201 ", "201 one", "201 two"]]);
  await cancelled.promise;
  expect((await get(url, { until: until(() => true) })).text).toBe("");
  await expect(get(url, { until: until(() => false) })).rejects.toThrow("answered with more than 4194304 bytes");
});
