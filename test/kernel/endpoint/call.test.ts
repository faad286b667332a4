/** What a call is sent with if its endpoint changes between the call's parts. */
import { expect, test } from "vitest";
import { UNLIMITED } from "../../../src/kernel/clients/outgoing.ts";
import { callEndpoint, type EndpointAccess, EndpointUnusable } from "../../../src/kernel/endpoint/call.ts";
import { completionBody } from "../../fakes/completion-body.ts";

const ANSWER = completionBody("hello", "m", 0, 1);
const REFUSED = { error: { message: "Unsupported parameter: 'stream_options'" } };

/** A call of an endpoint whose stored key a test changes. `keys`: those that requests had. */
function calling(replies: readonly { readonly status: number; readonly body: object }[]) {
  const stored: { key: string | null } = { key: "first" };
  const keys: (string | null)[] = [];
  const send: EndpointAccess["send"] = async (_url, init) => {
    keys.push(new Headers(init.headers).get("authorization"));
    const { status, body } = replies[keys.length - 1] ?? { status: 200, body: ANSWER };
    if (status !== 200) stored.key = "second";
    return Response.json(body, { status });
  };
  const open = async (): Promise<EndpointAccess> => {
    if (stored.key === null) throw new EndpointUnusable("it was deleted");
    return { base_url: "https://gpu.example/v1", api_key: stored.key, send, remember: async () => undefined };
  };
  const call = (decide?: () => Promise<null>) =>
    callEndpoint({
      ...{ open, waitMs: 10_000, controller: new AbortController(), decide },
      connection: UNLIMITED,
      call: () => ({
        ...{ idempotency_key: "k", model: "m", messages: [{ role: "user", content: "hi" }], tools: [] },
        sampling: {},
      }),
    });
  return { stored, keys, call };
}

test("a key that changes while it is decided how the prompt is sent is used for the call", async () => {
  const { stored, keys, call } = calling([]);
  const outcome = await call(async () => {
    stored.key = "second";
    return null;
  });
  expect([outcome.kind, keys]).toEqual(["answered", ["Bearer second"]]);
});

test("an endpoint that is deleted meanwhile is not called", async () => {
  const { stored, keys, call } = calling([]);
  const outcome = await call(async () => {
    stored.key = null;
    return null;
  });
  expect([outcome.kind, keys]).toEqual(["unusable", []]);
});

test("a call that is repeated without a refused parameter has the key that is stored then", async () => {
  const { keys, call } = calling([{ status: 400, body: REFUSED }]);
  expect((await call()).kind).toBe("answered");
  expect(keys).toEqual(["Bearer first", "Bearer second"]);
});
