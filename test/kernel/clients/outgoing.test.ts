/**
 * Outgoing calls, with a network that records what reaches it. A refused call reaches neither a server nor a resolver.
 */
import { afterEach, expect, test } from "vitest";
import { callEmbeddings, callModel, type Destination } from "../../../src/kernel/clients/inference.ts";
import { guarded, type Send, type Sent } from "../../../src/kernel/clients/outgoing.ts";
import { probeEndpoint } from "../../../src/kernel/clients/probe.ts";
import { offerBatch } from "../../../src/kernel/clients/trainer.ts";
import { type ScriptedModel, startScriptedModel } from "../../fakes/scripted-model.ts";

let model: ScriptedModel | undefined;
afterEach(async () => {
  await model?.stop();
  model = undefined;
});

const PRIVATE = [
  ...["127.0.0.1", "10.0.0.7", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "2130706433", "0x7f.1"],
  ...[
    "[::1]",
    "[::ffff:127.0.0.1]",
    "[fd00::1]",
    "localhost",
    "LOCALHOST.",
    "gpu.internal",
    "metadata.google.internal",
  ],
  ...["model", "api.svc", "metadata.goog"],
];

function noting() {
  const reached: { url: string; init: Sent }[] = [];
  const network: Send = async ({ href: url }, init) => {
    reached.push({ url, init });
    return new Response(null, { status: 307, headers: { location: "http://10.0.0.7/" } });
  };
  return { reached, network };
}

const call = { model: "m", messages: [], tools: [], sampling: {}, idempotency_key: "k", api_key: "sk-any-key-at-all" };

function to(base_url: string, send: Send): Destination {
  return { base_url, send, api_key: call.api_key, idempotency_key: "k", signal: new AbortController().signal };
}

test("no kind of call reaches a private address, in any spelling, unless the deployment permits its own network", async () => {
  const { reached, network } = noting();
  const send = guarded(network, false);
  for (const host of PRIVATE) {
    const base_url = `http://${host}:8000/v1`;
    const why = / is not a public address, and the platform's own network is private/;
    const refused = { kind: "failed", retryable: false, retry_after_ms: null };
    const chat = await callModel({ ...call, ...to(base_url, send) });
    expect(chat).toMatchObject({ ...refused, error: { name: "ModelError", message: expect.stringMatching(why) } });
    const embedded = await callEmbeddings({ ...to(base_url, send), model: "m", texts: ["a"], extra_body: null });
    expect(embedded).toMatchObject({ ...refused, error: { message: expect.stringMatching(why) } });
    const probe = { base_url, send, api_key: null, model: "m", usual: null, now: 0 };
    expect((await probeEndpoint(probe)).error).toMatch(why);
    const offer = { url: base_url, body: "{}", headers: {}, timeoutMs: 1000, send };
    expect(await offerBatch(offer)).toMatchObject({ kind: "absent", message: expect.stringMatching(why) });
  }
  expect(reached).toEqual([]);
});

test("a public address is called once, and its redirect is not followed", async () => {
  const { reached, network } = noting();
  const moved = await callModel({ ...call, ...to("https://api.example.com/v1/", guarded(network, false)) });
  expect(moved).toMatchObject({
    kind: "failed",
    retryable: false,
    error: { message: "307: the endpoint redirects; use the address it redirects to" },
  });
  expect(reached.map(({ url }) => url)).toEqual(["https://api.example.com/v1/chat/completions"]);
  expect(reached[0]?.init.redirect).toBe("manual");
});

test("in a deployment no call uses http, a user name in its address, or a host that is not allowed", async () => {
  const { reached, network } = noting();
  const send = guarded(network, false, ["api.example.com", "*.gpu.example"]);
  const signal = new AbortController().signal;
  for (const [address, why] of [
    ["http://api.example.com/v1", "api.example.com must be called over https"],
    ["https://me:word@api.example.com/v1", "an address must not contain a user name or password"],
    ["https://key@api.example.com/v1", "an address must not contain a user name or password"],
    ["https://api.example.com@10.0.0.7/v1", "an address must not contain a user name or password"],
    ["https://other.example/v1", "other.example is not one of the organisation's allowed hosts"],
    ["https://gpu.example/v1", "gpu.example is not one of the organisation's allowed hosts"],
  ] as const) {
    await expect(send(new URL(address), { signal })).rejects.toThrow(why);
  }
  expect(reached).toEqual([]);
  await send(new URL("https://api.example.com/v1"), { signal });
  await send(new URL("https://a.gpu.example:8443/v1"), { signal });
  expect(reached.map(({ url }) => url)).toEqual(["https://api.example.com/v1", "https://a.gpu.example:8443/v1"]);
});

test("an address that is not http or https is refused even if every network is permitted", async () => {
  const { reached, network } = noting();
  const send = guarded(network, true);
  for (const address of ["file:///etc/passwd", "ftp://example.com/", "data:application/json,{}"]) {
    const sent = send(new URL(address), { signal: new AbortController().signal });
    await expect(sent).rejects.toThrow(/^(file|ftp|data): is not supported$/);
  }
  expect(reached).toEqual([]);
});

test("a call is what the SDK would send: headers, one slash between address and path, the body as JSON", async () => {
  let headers: unknown;
  model = await startScriptedModel({
    reply: (request) => {
      headers = request.headers;
      return "ok";
    },
  });
  for (const [base_url, api_key] of [
    [model.url, "sk-1"],
    [`${model.url}/`, null],
  ] as const) {
    const { signal } = new AbortController();
    expect((await callModel({ ...call, base_url, api_key, signal })).kind).toBe("answered");
    expect(headers).toMatchObject({
      accept: "application/json",
      "content-type": "application/json",
      authorization: `Bearer ${api_key ?? "none"}`,
      "idempotency-key": "k",
      "user-agent": expect.stringMatching(/^OpenAI\/JS \d+\.\d+\.\d+$/),
    });
  }
});
