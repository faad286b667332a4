import { expect, test } from "vitest";
import { RUN, RUN_REQUEST } from "../../src/api/examples.ts";
import { openDoor } from "./door.ts";

async function refusalOf(body: unknown): Promise<unknown> {
  const calls: unknown[] = [];
  const { post, reported } = await openDoor({
    acceptRun: async (_env, _scope, request) => {
      calls.push(request);
      return { ok: true, value: { run: RUN, replayed: false } };
    },
  });
  const reply = await post("/v1/runs", body);
  expect(reply.status).toBe(400);
  expect({ calls, reported }).toEqual({ calls: [], reported: [] });
  return await reply.json();
}

const nested = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`;

test("nesting that no reader survives is refused with its place, not a crash", async () => {
  const text = JSON.stringify({ ...RUN_REQUEST, sampling: { extra_body: { a: "HERE" } } });
  for (const depth of [150, 50_000]) {
    expect(await refusalOf(text.replace('"HERE"', nested(depth)))).toMatchObject({
      error: {
        code: "invalid_request",
        param: expect.stringContaining("sampling.extra_body.a[0]"),
      },
    });
  }
});

test("a member called __proto__ is refused rather than lost", async () => {
  const text = JSON.stringify({ ...RUN_REQUEST, metadata: { HERE: "x" } });
  expect(await refusalOf(text.replace("HERE", "__proto__"))).toMatchObject({
    error: { code: "unknown_field", param: "metadata.__proto__" },
  });
});

test.each([
  ["http://user:secret@127.0.0.1/v1", "endpoint.base_url"],
  ["http://127.0.0.1/v1?key=secret", "endpoint.base_url"],
  ["http://127.0.0.1/v1#f", "endpoint.base_url"],
  [`http://127.0.0.1/${"v".repeat(3000)}`, "endpoint.base_url"],
])(
  "the address %.40s is refused: it would be shown to whoever reads the run",
  async (base_url, param) => {
    expect(await refusalOf({ ...RUN_REQUEST, endpoint: { base_url } })).toMatchObject({
      error: { code: "invalid_request", param },
    });
  },
);

test.each(["", "sk\nX: y", "schlüssel"])(
  "the key %j cannot travel in a header and is refused",
  async (api_key) => {
    const endpoint = { base_url: "http://127.0.0.1/v1", api_key };
    expect(await refusalOf({ ...RUN_REQUEST, endpoint })).toMatchObject({
      error: { code: "invalid_request", param: "endpoint.api_key" },
    });
  },
);

test("a query parameter nobody reads is refused on every route, a read one passes", async () => {
  const { ask } = await openDoor({ readRun: async () => ({ ok: true, value: RUN }) });
  expect((await ask(`/v1/runs/${RUN.id}?verbose=1`)).status).toBe(400);
  expect((await ask(`/v1/environments?x=1`)).status).toBe(400);
  expect((await ask(`/v1/runs?metadata[__proto__]=x`)).status).toBe(400);
  expect((await ask(`/v1/runs/${RUN.id}`)).status).toBe(200);
});
