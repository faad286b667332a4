import { expect, test } from "vitest";
import { LIMITS } from "../../../src/contract/limits.ts";
import { BrokenBodyError } from "../../../src/kernel/kit/body-chunks.ts";
import { DATASET } from "./examples.ts";
import { openTestApi } from "./test-api.ts";

type Call = readonly unknown[];

/** An API whose uploads are accepted without being read. */
async function takingApi() {
  const calls: Call[] = [];
  const api = await openTestApi({
    createDataset: async (_env, _scope, upload, body, options) => {
      calls.push([upload, options]);
      await body?.cancel();
      return { ok: true, value: { dataset: DATASET, replayed: options.idempotencyKey !== null } };
    },
  });
  const send = (query: string, headers: Record<string, string> = {}, body: BodyInit = "{}") => {
    const type = { "content-type": "application/jsonl" };
    return api.ask(`/v1/datasets${query}`, {
      method: "POST",
      body,
      headers: { ...type, ...headers },
    });
  };
  return { ...api, calls, send };
}

test("an upload passes its query on and returns 201 with the location of the dataset", async () => {
  const { send, calls, clock } = await takingApi();
  const args = encodeURIComponent('{"system_prompt":"s"}');
  const reply = await send(`?name=mine&environment=gsm8k@1&environment_args=${args}`);
  expect(reply.status).toBe(201);
  expect(reply.headers.get("location")).toBe(`/v1/datasets/${DATASET.id}`);
  expect(reply.headers.get("idempotent-replayed")).toBe(null);
  expect(await reply.json()).toEqual(DATASET);
  const upload = { name: "mine", environment: "gsm8k@1", environment_args: { system_prompt: "s" } };
  const allowed = expect.any(Function);
  expect(calls).toEqual([[upload, { idempotencyKey: null, now: clock.now, allowed }]]);
  const again = await send("", { "idempotency-key": "k" });
  expect(again.headers.get("idempotent-replayed")).toBe("true");
});

test("JSON lines are accepted under either content type, and any other one is 415 with both named", async () => {
  const { send, calls } = await takingApi();
  for (const type of ["application/x-ndjson", "Application/JSONL; charset=utf-8"]) {
    expect((await send("", { "content-type": type })).status).toBe(201);
  }
  for (const type of ["application/json", "text/plain", "application/x-www-form-urlencoded", ""]) {
    const reply = await send("", { "content-type": type });
    expect(reply.status).toBe(415);
    const message = expect.stringMatching("application/jsonl .or application/x-ndjson.");
    expect(await reply.json()).toMatchObject({ error: { code: "invalid_request", message } });
  }
  expect(calls.length).toBe(2);
});

test("a compressed file is 415 with the reason, and content-encoding identity is accepted", async () => {
  const { send, calls } = await takingApi();
  const reply = await send("", { "content-encoding": "gzip" });
  expect(reply.status).toBe(415);
  const message = expect.stringContaining("uncompressed");
  expect(await reply.json()).toMatchObject({ error: { code: "invalid_request", message } });
  expect((await send("", { "content-encoding": "identity" })).status).toBe(201);
  expect(calls.length).toBe(1);
});

test.each([
  ["?nme=x", "unknown_field", "nme"],
  ["?name=a%20b", "invalid_request", "name"],
  ["?name=ds_mine", "invalid_request", "name"],
  ["?environment=", "invalid_request", "environment"],
  ["?environment_args={}", "invalid_request", "environment_args"],
  ["?environment=gsm8k&environment_args={", "invalid_request", "environment_args"],
  ["?environment=gsm8k&environment_args=[]", "invalid_request", "environment_args"],
  ["?environment=gsm8k&environment_args={%22__proto__%22:1}", "unknown_field", "environment_args.__proto__"],
])("the query %s is refused by name", async (query, code, param) => {
  const { send, calls } = await takingApi();
  const reply = await send(query);
  expect(reply.status).toBe(400);
  expect(await reply.json()).toMatchObject({ error: { code, param } });
  expect(calls).toEqual([]);
});

test("a refusal comes after the body was read, because its sender reads no answer before", async () => {
  const { send } = await takingApi();
  let left = 40;
  const body = new ReadableStream({
    type: "bytes",
    pull(controller) {
      left -= 1;
      if (left >= 0) controller.enqueue(new Uint8Array(1000));
      else controller.close();
    },
  });
  expect((await send("?nme=x", {}, body)).status).toBe(400);
  expect(left).toBe(-1);
});

test("a body whose content-length is over the limit is 413 before any of it is read", async () => {
  const { send, calls } = await takingApi();
  const length = String(LIMITS.datasetBytes + 1);
  const reply = await send("", { "content-length": length });
  expect(reply.status).toBe(413);
  expect(await reply.json()).toMatchObject({ error: { code: "too_large", param: null } });
  expect(calls).toEqual([]);
});

test("an upload that makes no progress is 408 with the reason", async () => {
  const slow = new BrokenBodyError("the body brought too little", true, null);
  const { ask } = await openTestApi({ createDataset: () => Promise.reject(slow) });
  const headers = { "content-type": "application/jsonl" };
  const reply = await ask("/v1/datasets", { method: "POST", body: "{}", headers });
  expect(reply.status).toBe(408);
  expect(await reply.json()).toMatchObject({ error: { code: "invalid_request", message: slow.message } });
});

test("rows come as lines with a link to the next rows, which keeps the rest of the query", async () => {
  const pages: Call[] = [];
  const { ask } = await openTestApi({
    readDatasetRows: async (_env, _scope, id, page) => {
      pages.push([id, page]);
      const next = page.after === null ? 1 : null;
      return { ok: true, value: { lines: ['{"index":0,"row":{}}\n'], next } };
    },
  });
  const reply = await ask("/v1/datasets/mine/rows?limit=2");
  expect(reply.headers.get("content-type")).toBe("application/jsonl");
  expect(new TextDecoder().decode(await reply.arrayBuffer())).toBe('{"index":0,"row":{}}\n');
  const link = reply.headers.get("link");
  expect(link).toBe('<http://platform.test/v1/datasets/mine/rows?limit=2&after=1>; rel="next"');
  const last = await ask("/v1/datasets/mine/rows?limit=2&after=1");
  expect(last.headers.get("link")).toBe(null);
  expect(pages).toEqual([
    ["mine", { after: null, limit: 2 }],
    ["mine", { after: 1, limit: 2 }],
  ]);
  for (const query of ["limit=0", "limit=1001", "after=-1", "after=x", "after="]) {
    expect((await ask(`/v1/datasets/mine/rows?${query}`)).status).toBe(400);
  }
});
