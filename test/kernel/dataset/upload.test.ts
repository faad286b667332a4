import { env } from "cloudflare:workers";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { LIMITS } from "../../../src/contract/limits.ts";
import type { Scope } from "../../../src/contract/scope.ts";
import { createDataset, type UploadOptions } from "../../../src/kernel/dataset/upload.ts";
import { uploadKeys } from "../../../src/kernel/kit/names.ts";
import { MEMORY } from "../memory-budget.ts";
import { openPlatform, type TestApi } from "../platform.ts";
import { questions } from "../rows.ts";
import { jsonLines, kept, rowPages, sha256, upload, uploaded } from "../upload.ts";

const encoder = new TextEncoder();
/** The tests move megabytes through both stores. */
const NOTHING = { keys: [], ids: [] };

let platform: TestApi;
beforeAll(async () => {
  platform = await openPlatform();
});

function streamOf(...chunks: Uint8Array[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    type: "bytes",
    pull(controller) {
      const chunk = chunks.shift();
      if (chunk === undefined) controller.close();
      else controller.enqueue(chunk);
    },
  });
}

/** Breaks off after the chunks, like the body of a caller that disconnects. */
function broken(...chunks: Uint8Array[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    type: "bytes",
    pull(controller) {
      const chunk = chunks.shift();
      if (chunk === undefined) controller.error(new Error("the caller went away"));
      else controller.enqueue(chunk);
    },
  });
}

/** Sends one row when the promise resolves. */
function waiting(over: Promise<void>): ReadableStream<Uint8Array> {
  let sent = false;
  return new ReadableStream({
    type: "bytes",
    async pull(controller) {
      await over;
      if (sent) controller.close();
      else controller.enqueue(encoder.encode(good));
      sent = true;
    },
  });
}

/** Rows of a little more than one part. */
function largeFile(lastRow: string): Uint8Array {
  const row = `{"question":"${"x".repeat(1000)}"}\n`;
  const count = Math.ceil((LIMITS.datasetPartBytes * 1.2) / row.length);
  return encoder.encode(row.repeat(count) + lastRow);
}

test("an upload is stored byte for byte, and is described by its id and by its name", async () => {
  const api = await openPlatform();
  const file = encoder.encode(`\ufeff${jsonLines(questions(3))}\n`);
  const response = await upload(api, file, "name=mine");
  expect(response.status).toBe(201);
  const dataset = await response.json<{ id: string; created_at: number }>();
  expect(dataset).toEqual({
    object: "dataset",
    id: expect.stringMatching(/^ds_/),
    name: "mine",
    rows: 3,
    bytes: file.length,
    sha256: await sha256(file),
    environment: null,
    created_at: expect.any(Number),
  });
  expect(response.headers.get("location")).toBe(`/v1/datasets/${dataset.id}`);
  for (const named of [dataset.id, "mine"]) {
    expect(await (await api.ask(`/v1/datasets/${named}`)).json()).toEqual(dataset);
  }
  const keys = uploadKeys(api.scope, dataset.id);
  const stored = await env.STORE.get(keys.key);
  expect(await stored?.bytes()).toEqual(file);
  expect(await kept(api)).toEqual({ keys: [keys.index_key, keys.key], ids: [dataset.id] });
});

test("the dataset does not depend on how the bytes arrive", async () => {
  const file = encoder.encode('\ufeff{"question":"é"}\r\n\n{"question":"q"}');
  const rows = [{ question: "é" }, { question: "q" }].map((row, index) => ({ index, row }));
  const digest = await sha256(file);
  const whole = await uploaded(platform, file);
  expect(whole).toMatchObject({ rows: 2, bytes: file.length, sha256: digest });
  for (let at = 1; at < file.length; at += 1) {
    const cut = await uploaded(platform, streamOf(file.slice(0, at), file.slice(at)));
    expect(cut).toEqual({ ...whole, id: cut.id, created_at: cut.created_at });
    expect(await rowPages(platform, cut.id)).toEqual([rows]);
  }
});

const good = '{"question":"q"}\n';
const noText = new Uint8Array([...encoder.encode('{"question":"'), 0xff, ...encoder.encode('"}\n')]);

test.for<[what: string, file: BodyInit, query: string, message: string, param: string | null]>([
  ["no rows", " \n\n", "", "the file has no rows", null],
  ["a row without a question", `${good}{"answer":"4"}\n`, "", "line 2: question is required", "rows[1].question"],
  ["blank lines before it", `${good}\n \n{}`, "", "line 4: question is required", "rows[1].question"],
  ["a prompt of no role", '{"prompt":[{"content":"hi"}]}', "", "line 1: prompt[0].role", "rows[0].prompt[0].role"],
  ["broken JSON", `${good}{"question":\n`, "", "line 2: not valid JSON: ", "rows[1]"],
  ["a list", `${good}[1]\n`, "", "line 2: a row must be a JSON object", "rows[1]"],
  ["a number", "4", "", "line 1: a row must be a JSON object", "rows[0]"],
  ["bytes that are no text", noText, "", "line 1: not valid JSON: the file is not UTF-8 text", "rows[0]"],
  [
    "a name that vanishes",
    '{"question":"q","__proto__":1}',
    "",
    "line 1: __proto__: is not a valid name",
    "rows[0].__proto__",
  ],
  ["endless nesting", `{"question":"q","info":${"[".repeat(999)}${"]".repeat(999)}}`, "", "deep", null],
  [
    "a whole number that no double keeps",
    `${good}\n{"question":"q","answer":9007199254740993}`,
    "",
    "line 3: answer: the whole number 9007199254740993 has too many digits to be stored exactly: send it as a string",
    "rows[1].answer",
  ],
  [
    "such a number in a list of an environment's row",
    '{"question":"q","answer":"1","info":{"ids":[1,-9.007199254740993e15]}}',
    "environment=gsm8k",
    "line 1: info.ids[1]: the number -9.007199254740993e15 has too many digits",
    "rows[0].info.ids[1]",
  ],
  [
    "a number past every double",
    `${good}{"question":"q","info":{"n":1e400}}`,
    "",
    "line 2: info.n: the number 1e400 is too large to be stored",
    "rows[1].info.n",
  ],
  [
    "a number in info that is a text",
    JSON.stringify({ question: "q", info: '{"ids":[12345678901234567890123]}' }),
    "",
    "line 1: info.ids[0]: the whole number 12345678901234567890123 has",
    "rows[0].info.ids[0]",
  ],
  [
    "a key that stands twice",
    `${good}\n{"question":"q","answer":"1","answer":"2"}`,
    "",
    'line 3: the key "answer" appears twice',
    "rows[1].answer",
  ],
  [
    "a key that stands twice further in",
    '{"question":"q","info":{"a":[{"b":1,"b":2}]}}',
    "",
    'line 1: info.a[0]: the key "b" appears twice',
    "rows[0].info.a[0].b",
  ],
  ["a row its environment refuses", `${good}`, "environment=gsm8k", "line 1: answer is required", "rows[0].answer"],
])("%s is refused with its line, and nothing is stored", async ([what, file, query, message, param]) => {
  const api = await openPlatform();
  const response = await upload(api, file, query);
  expect(response.status).toBe(400);
  const { error } = await response.json<{ error: Record<string, string | null> }>();
  expect(error["message"]).toContain(message);
  if (what === "endless nesting") expect(error["param"]).toMatch(/^rows\[0\]\.info\[0\]/);
  else expect(error["param"]).toBe(param);
  expect(error["code"]).toBe(what === "no rows" ? "invalid_request" : "invalid_row");
  expect(await kept(api)).toEqual(NOTHING);
});

test("a row over the limit is refused with its line and place", async () => {
  const api = await openPlatform();
  const long = `${good}\n{"question":"${"x".repeat(LIMITS.taskRowBytes)}"}`;
  const response = await upload(api, long);
  expect(response.status).toBe(413);
  expect(await response.json()).toMatchObject({
    error: { code: "too_large", message: expect.stringContaining("line 3: "), param: "rows[1]" },
  });
  expect(await kept(api)).toEqual(NOTHING);
});

test("rows are checked against an environment's schema and arguments, and the dataset says which", async () => {
  const query = `environment=gsm8k@1&environment_args=${encodeURIComponent('{"system_prompt":"s"}')}`;
  const dataset = await uploaded(platform, jsonLines(questions(2)), query);
  expect(dataset.environment).toMatchObject({ id: "gsm8k", version: "1.1.0" });
  const refusedBy = async (asked: string) => {
    const response = await upload(platform, jsonLines(questions(1)), asked);
    const { error } = await response.json<{ error: { code: string; param: string } }>();
    return [response.status, error.code, error.param];
  };
  expect(await refusedBy("environment=nobody")).toEqual([404, "not_found", "environment"]);
  const args = `environment=gsm8k&environment_args=${encodeURIComponent('{"promptt":1}')}`;
  expect(await refusedBy(args)).toEqual([400, "unknown_field", "environment_args.promptt"]);
});

test("a file of several parts reads back complete", async () => {
  const file = largeFile('{"question":"the last"}');
  const dataset = await uploaded(platform, file);
  expect(dataset).toMatchObject({ bytes: file.length, sha256: await sha256(file) });
  const last = dataset.rows - 1;
  const rows = await rowPages(platform, dataset.id, `after=${last - 1}`);
  expect(rows).toEqual([[{ index: last, row: { question: "the last" } }]]);
});

/** The real bucket, and the multipart uploads started in it; `watch` may replace one. */
function watchedBucket(watch = (upload: R2MultipartUpload) => upload): {
  bucket: R2Bucket;
  begun: R2MultipartUpload[];
} {
  const begun: R2MultipartUpload[] = [];
  const bucket = new Proxy(env.STORE, {
    get(target, name) {
      if (name !== "createMultipartUpload") {
        const member: unknown = Reflect.get(target, name);
        return typeof member === "function" ? member.bind(target) : member;
      }
      return async (key: string) => {
        const upload = await target.createMultipartUpload(key);
        begun.push(upload);
        return watch(upload);
      };
    },
  });
  return { bucket, begun };
}

function receive(scope: Scope, bucket: R2Bucket, body: ReadableStream<Uint8Array>, given: Partial<UploadOptions> = {}) {
  const asked = { name: null, environment: null, environment_args: {} };
  const options = { idempotencyKey: null, now: Date.now(), ...given };
  return createDataset({ ...env, STORE: bucket }, scope, asked, body, options);
}

test("a file of exactly the limit is accepted, and one byte more is too large and leaves nothing", async () => {
  const api = await openPlatform();
  const file = largeFile(good);
  const { bucket, begun } = watchedBucket();
  const maxBytes = file.length;
  const more = streamOf(file.slice(), encoder.encode("\n"));
  const refused = await receive(api.scope, bucket, more, { maxBytes });
  expect(refused).toMatchObject({ ok: false, error: { code: "too_large", param: null } });
  await expectAborted(begun);
  expect(await kept(api)).toEqual(NOTHING);
  expect(await receive(api.scope, env.STORE, streamOf(file), { maxBytes })).toMatchObject({
    ok: true,
  });
});

test("a bad row after the first part ends the multipart upload, and nothing of it is stored", async () => {
  const api = await openPlatform();
  const { bucket, begun } = watchedBucket();
  const refused = await receive(api.scope, bucket, streamOf(largeFile("{}")));
  expect(refused).toMatchObject({ ok: false, error: { code: "invalid_row" } });
  await expectAborted(begun);
  expect(await kept(api)).toEqual(NOTHING);
});

test("a caller that disconnects leaves nothing, before the first part and after it", async () => {
  const api = await openPlatform();
  const { bucket, begun } = watchedBucket();
  const brokenOff = { ok: false, error: { code: "invalid_request", param: null } };
  const early = await receive(api.scope, bucket, broken(encoder.encode(good)));
  expect(early).toMatchObject(brokenOff);
  expect(begun).toEqual([]);
  const late = await receive(api.scope, bucket, broken(largeFile(good)));
  expect(late).toMatchObject(brokenOff);
  await expectAborted(begun);
  expect(await kept(api)).toEqual(NOTHING);
});

test("one organisation's uploads leave places for another's, and its next upload is refused with a retry time", async () => {
  const [greedy, fair] = [await openPlatform(), await openPlatform()];
  const { total } = MEMORY;
  onTestFinished(() => {
    MEMORY.total = total;
  });
  MEMORY.total = 48 * LIMITS.datasetPartBytes;
  const gates = Array.from({ length: 10 }, () => Promise.withResolvers<void>());
  let refused = 0;
  const under = gates.map(async ({ promise }) => {
    const outcome = await receive(greedy.scope, env.STORE, waiting(promise));
    if (!outcome.ok) refused += 1;
    return outcome;
  });
  const reply = await upload(greedy, encoder.encode(good));
  expect(reply.status).toBe(429);
  expect(reply.headers.get("retry-after")).toBe("1");
  expect(await reply.json()).toMatchObject({ error: { code: "rate_limited" } });
  expect((await upload(fair, encoder.encode(good))).status).toBe(201);
  // The others of them have waited in vain, too.
  await expect.poll(() => refused).toBe(6);
  gates[0]?.resolve();
  await under[0];
  expect((await upload(greedy, encoder.encode(good))).status).toBe(201);
  for (const { resolve } of gates) resolve();
  const taken = (await Promise.all(under)).filter(({ ok }) => ok);
  // The organisation gets another one only while as much is free as it then holds, and one beyond that.
  expect(taken).toHaveLength(4);
});

test("a file whose last step fails after it was carried out is deleted too", async () => {
  const api = await openPlatform();
  const { bucket } = watchedBucket((upload) => ({
    ...upload,
    uploadPart: (...args) => upload.uploadPart(...args),
    abort: () => upload.abort(),
    complete: async (parts) => {
      await upload.complete(parts);
      throw new Error("the answer was lost");
    },
  }));
  await expect(receive(api.scope, bucket, streamOf(largeFile(good)))).rejects.toThrow();
  expect(await kept(api)).toEqual(NOTHING);
});

test("a repeat of a key is read only up to the maximum length of a file", async () => {
  const api = await openPlatform();
  const file = encoder.encode(good);
  const given = { idempotencyKey: "k", maxBytes: file.length };
  expect(await receive(api.scope, env.STORE, streamOf(file.slice()), given)).toMatchObject({
    ok: true,
  });
  const more = await receive(api.scope, env.STORE, streamOf(file, file.slice()), given);
  expect(more).toMatchObject({ ok: false, error: { code: "too_large" } });
});

async function expectAborted(begun: readonly R2MultipartUpload[]): Promise<void> {
  expect(begun).toHaveLength(1);
  for (const upload of begun) {
    await expect(upload.uploadPart(9, encoder.encode("more"))).rejects.toThrow(/not exist/);
  }
}

test("the same key and file give the same dataset again, and another file is refused", async () => {
  const api = await openPlatform();
  const headers = { "idempotency-key": "k" };
  const file = jsonLines(questions(2));
  const first = await upload(api, file, "name=once", headers);
  const again = await upload(api, file, "name=once", headers);
  expect(again.status).toBe(201);
  expect(again.headers.get("idempotent-replayed")).toBe("true");
  const dataset = await first.json<{ id: string }>();
  expect(await again.json()).toEqual(dataset);
  for (const [body, query] of [
    [jsonLines(questions(3)), "name=once"],
    [file, "name=other"],
  ] as const) {
    const other = await upload(api, body, query, headers);
    expect(other.status).toBe(422);
    expect(await other.json()).toMatchObject({ error: { code: "idempotency_conflict" } });
  }
  expect((await kept(api)).ids).toEqual([dataset.id]);
  await api.ask(`/v1/datasets/${dataset.id}`, { method: "DELETE" });
  const gone = await upload(api, file, "name=once", headers);
  expect(gone.status).toBe(409);
});

test("of two simultaneous uploads with one key or one name, only one creates a dataset", async () => {
  const api = await openPlatform();
  const file = jsonLines(questions(2));
  const keyed = await Promise.all([1, 2, 3].map(() => upload(api, file, "", { "idempotency-key": "k" })));
  const ids = await Promise.all(keyed.map(async (reply) => (await reply.json<{ id: string }>()).id));
  expect(new Set(ids).size).toBe(1);
  const named = await Promise.all([1, 2, 3].map(() => upload(api, file, "name=one")));
  expect(named.map(({ status }) => status).toSorted()).toEqual([201, 409, 409]);
  const { keys, ids: left } = await kept(api);
  expect(left).toHaveLength(2);
  expect(keys).toHaveLength(4);
});

test("a name that is taken is refused before the file is read, and can be used again after the deletion", async () => {
  const { id } = await uploaded(platform, good, "name=taken");
  const unread = streamOf();
  const response = await upload(platform, unread, "name=taken");
  expect(response.status).toBe(409);
  expect(await response.json()).toMatchObject({ error: { code: "conflict", param: "name" } });
  expect((await platform.ask(`/v1/datasets/${id}`, { method: "DELETE" })).status).toBe(200);
  await uploaded(platform, good, "name=taken");
});
