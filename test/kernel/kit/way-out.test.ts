/**
 * Both networks: `fetch` as in a deployment, and the local binding that bypasses Miniflare's Worker. Guard, bounds and
 * outcomes are the same.
 */
import { env } from "cloudflare:workers";
import { describe, expect, test } from "vitest";
import { LIMITS } from "../../../src/contract/limits.ts";
import { callModel, type ModelCall } from "../../../src/kernel/clients/inference.ts";
import { wayOut } from "../../../src/kernel/kit/address.ts";
import { guardedFetch } from "../../../src/kernel/kit/guarded-fetch.ts";
import { requestsOf } from "../platform.ts";
import { script, type Turns } from "../script.ts";

const MIB = 1024 * 1024;
const DEPLOYED = { ...env, NETWORK: undefined };
const LOCAL = { ...env, NETWORK: env.OPEN_NETWORK };

function calling(on: Env, turns: Turns, more: Partial<ModelCall> = {}) {
  const model = script(turns);
  const { signal } = new AbortController();
  const call = { model, messages: [], tools: [], sampling: {}, idempotency_key: "k", api_key: "sk-mine-0123456" };
  return { model, outcome: callModel({ ...call, base_url: env.MODEL_URL, send: wayOut(on, null), signal, ...more }) };
}

/** Like `on`, but with only public addresses permitted; the network records its requests. */
function publicOnly(on: Env) {
  const asked: string[] = [];
  const { NETWORK: under } = on as { NETWORK?: Fetcher };
  const fetch = async (url: URL, init: RequestInit) => {
    asked.push(url.href);
    return await under?.fetch(url, init);
  };
  return { asked, env: { ...on, ALLOW_PRIVATE_ENDPOINTS: "false", ...(under && { NETWORK: { fetch } }) } };
}

describe.each([
  ["fetch", DEPLOYED],
  ["the binding", LOCAL],
])("by %s", (_way, on) => {
  test("a model is called, and answers", async () => {
    const { model, outcome } = calling(on, ["hello"]);
    expect(await outcome).toMatchObject({ kind: "answered", response: { message: { content: "hello" } } });
    expect(await requestsOf(model)).toMatchObject([{ authorization: "Bearer sk-mine-0123456", idempotency_key: "k" }]);
  });

  test("neither a model call nor can.fetch reaches a private address if only public ones are permitted", async () => {
    const { asked, env: shut } = publicOnly(on);
    const { model, outcome } = calling(shut, ["hello"]);
    const why = "127.0.0.1 is not a public address";
    expect(await outcome).toMatchObject({
      kind: "failed",
      retryable: false,
      error: { name: "ModelError", message: expect.stringContaining(why) },
    });
    const means = { hosts: async () => null, now: () => 0, secret: () => "" };
    const fetched = guardedFetch(shut, means)(`${env.MODEL_URL}/models`);
    await expect(fetched).rejects.toThrow(`url_not_allowed: ${why}`);
    // Names are refused as names: a resolver, which might know them, is not called.
    for (const base_url of ["http://localhost:8000/v1", "http://metadata.google.internal/v1", "http://[::1]/v1"]) {
      const named = calling(shut, ["hello"], { base_url });
      expect(await named.outcome).toMatchObject({ kind: "failed", retryable: false });
    }
    expect([await requestsOf(model), asked]).toEqual([[], []]);
  });

  test("a redirect is not followed: neither key nor prompt is sent to an unchecked address", async () => {
    const headers = { location: `${env.MODEL_URL.replace("127.0.0.1", "localhost")}/chat/completions` };
    const { model, outcome } = calling(on, [{ fault: { kind: "status", status: 307, headers } }]);
    expect(await outcome).toMatchObject({
      kind: "failed",
      retryable: false,
      error: { message: "307: the endpoint redirects; use the address it redirects to" },
    });
    expect((await requestsOf(model)).length).toBe(1);
  });

  test("replies are read within bounds, after decompression, and their senders are disconnected", async () => {
    const tooLong = { error: { message: `the reply is more than ${LIMITS.completionBytes} bytes` }, retryable: true };
    for (const fault of [{ kind: "endless" }, { kind: "bomb", bytes: 300 * MIB }] as const) {
      expect(await calling(on, [{ fault }]).outcome).toMatchObject(tooLong);
    }
    const refused = await calling(on, [{ fault: { kind: "endless", status: 503 } }]).outcome;
    expect(refused).toMatchObject({ kind: "failed", status: 503 });
    const message = refused.kind === "failed" ? refused.error.message : "";
    expect([message.slice(0, 14), message.length]).toEqual(['503 {"id": "aa', LIMITS.refusalBytes + "503 ".length]);
  });

  test("a call's deadline ends it, before its first byte and after", async () => {
    for (const fault of [{ kind: "hang" }, { kind: "drip", everyMs: 1 }] as const) {
      const controller = new AbortController();
      const { model, outcome } = calling(on, [{ fault }], { signal: controller.signal });
      await requestsOf(model, 1);
      controller.abort();
      expect(await outcome).toEqual({ kind: "aborted" });
    }
  });

  test("a broken connection is a failure of the endpoint, and may be retried", async () => {
    const reset = calling(on, [{ fault: { kind: "reset" } }]);
    const cut = calling(on, [{ fault: { kind: "cut" } }]);
    const nobody = calling(on, [], { base_url: "http://127.0.0.1:9/v1" });
    for (const { outcome } of [reset, cut, nobody]) {
      expect(await outcome).toMatchObject({ kind: "failed", retryable: true, error: { name: "ModelError" } });
      expect(await outcome).not.toHaveProperty("status");
    }
  });
});

test("if only public addresses are permitted, the binding connects to no other, whatever a name resolves to", async () => {
  const { model, outcome } = calling({ ...env, NETWORK: env.PUBLIC_NETWORK } as Env, ["hello"]);
  expect(await outcome).toMatchObject({ kind: "failed", retryable: true, error: { message: "Connection error." } });
  expect(await requestsOf(model)).toEqual([]);
});
