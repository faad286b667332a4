/** Uploads in parts: what they become, what is refused, and what a cut at any point leaves. */
import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import { DatasetUploadProgress, DatasetUploadView } from "../../../src/contract/dataset-upload.ts";
import { LIMITS } from "../../../src/contract/limits.ts";
import type { Scope } from "../../../src/contract/scope.ts";
import { DatasetView } from "../../../src/contract/uploaded-dataset.ts";
import {
  beginUpload,
  completeUpload,
  dropUpload,
  endUpload,
  receivePart,
} from "../../../src/kernel/dataset/upload-parts.ts";
import { folderOf, partsFolder, uploadKeys } from "../../../src/kernel/kit/names.ts";
import { Subrequests } from "../../../src/kernel/kit/subrequests.ts";
import { cutOffAt } from "../cut-off.ts";
import { openPlatform, type TestApi } from "../platform.ts";
import { questions } from "../rows.ts";
import { jsonLines, kept, rowPages, sha256, uploaded } from "../upload.ts";

const encoder = new TextEncoder();
/** The tests move megabytes through both stores. */
const PART = LIMITS.datasetPartBytes;
const FILE = encoder.encode(jsonLines(questions(3)));
/** Of the same length. */
const OTHER = encoder.encode(jsonLines(questions(3)).toUpperCase().replaceAll("QUESTION", "question"));

let platform: TestApi;
beforeAll(async () => {
  platform = await openPlatform();
});

async function begin(api: TestApi, body: object = {}): Promise<DatasetUploadView> {
  const reply = await api.post("/v1/dataset-uploads", body);
  if (reply.status !== 201) throw new Error(await reply.text());
  return DatasetUploadView.parse(await reply.json());
}

function put(api: TestApi, id: string, number: number | string, bytes: BodyInit, headers: Record<string, string> = {}) {
  return api.ask(`/v1/dataset-uploads/${id}/parts/${number}`, {
    method: "PUT",
    body: bytes,
    headers: { "content-type": "application/octet-stream", ...headers },
  });
}

const complete = (api: TestApi, id: string, bytes: number) => api.post(`/v1/dataset-uploads/${id}/complete`, { bytes });

async function progress(api: TestApi, id: string): Promise<DatasetUploadProgress> {
  return DatasetUploadProgress.parse(await (await api.ask(`/v1/dataset-uploads/${id}`)).json());
}

/** Keys of the parts of all uploads of the tenant. */
async function partKeys({ scope }: TestApi): Promise<string[]> {
  const { objects } = await env.STORE.list({ prefix: `${folderOf(scope)}uploads/` });
  return objects.map(({ key }) => key);
}

async function errorOf(
  reply: Response,
): Promise<{ status: number; code: string; message: string; param: string | null }> {
  const { error } = await reply.json<{ error: { code: string; message: string; param: string | null } }>();
  return { status: reply.status, ...error };
}

function bodyOf(bytes: Uint8Array, gate?: Promise<void>): ReadableStream<Uint8Array> {
  return new ReadableStream({
    type: "bytes",
    async start(controller) {
      await gate;
      controller.enqueue(bytes.slice());
      controller.close();
    },
  });
}

/** Rows of a little more than one part. Their length does not divide a part's, so rows are cut at the borders. */
function largeFile(lastRow: string): Uint8Array {
  const row = `{"question":"${"x".repeat(1000)}"}\n`;
  return encoder.encode(row.repeat(Math.ceil((PART * 1.2) / row.length)) + lastRow);
}

const partsOf = (file: Uint8Array) =>
  Array.from({ length: Math.ceil(file.length / PART) }, (_, at) => file.slice(at * PART, (at + 1) * PART));

test("parts in any order become the dataset that the same file becomes in one request", async () => {
  const api = await openPlatform();
  const file = largeFile('{"question":"the last"}');
  const digest = await sha256(file);
  const upload = await begin(api, { name: "large", bytes: file.length, sha256: digest });
  expect(upload).toMatchObject({ name: "large", part_bytes: PART, dataset_id: null, sha256: digest });
  for (const [at, part] of [...partsOf(file).entries()].reverse()) {
    const reply = await put(api, upload.id, at + 1, part);
    expect(await reply.json()).toEqual({ number: at + 1, bytes: part.length });
  }
  expect((await progress(api, upload.id)).parts.map(({ number }) => number)).toEqual([1, 2]);
  const reply = await complete(api, upload.id, file.length);
  expect(reply.status).toBe(201);
  const dataset = DatasetView.parse(await reply.json());
  expect(reply.headers.get("location")).toBe(`/v1/datasets/${dataset.id}`);
  expect(dataset).toMatchObject({ name: "large", bytes: file.length, sha256: digest });
  const whole = await uploaded(api, file);
  expect(dataset.rows).toBe(whole.rows);
  const [one, other] = [uploadKeys(api.scope, dataset.id), uploadKeys(api.scope, whole.id)];
  const bytesAt = async (key: string) => new Uint8Array((await (await env.STORE.get(key))?.arrayBuffer()) ?? []);
  expect(await bytesAt(one.index_key)).toEqual(await bytesAt(other.index_key));
  expect(await sha256(await bytesAt(one.key))).toBe(digest);
  const [page] = await rowPages(api, dataset.id, `after=${dataset.rows - 2}`);
  expect(page).toEqual([{ index: dataset.rows - 1, row: { question: "the last" } }]);
  expect(await partKeys(api)).toEqual([]);
});

test("a repeat of the completion returns the same dataset, and no part is taken any more", async () => {
  const api = await openPlatform();
  const { id } = await begin(api);
  await put(api, id, 1, FILE);
  const first = DatasetView.parse(await (await complete(api, id, FILE.length)).json());
  const again = await complete(api, id, FILE.length);
  expect(again.status).toBe(201);
  expect(again.headers.get("idempotent-replayed")).toBe("true");
  expect(await again.json()).toEqual(first);
  expect(await progress(api, id)).toMatchObject({ dataset_id: first.id, parts: [] });
  expect(await errorOf(await put(api, id, 1, FILE))).toMatchObject({ status: 409, code: "conflict" });
  expect(await partKeys(api)).toEqual([]);
  expect((await kept(api)).ids).toEqual([first.id]);
});

test("of several simultaneous completions one creates the dataset, and all return it", async () => {
  const api = await openPlatform();
  const { id } = await begin(api, { name: "once" });
  await put(api, id, 1, FILE);
  const replies = await Promise.all([1, 2, 3].map(() => complete(api, id, FILE.length)));
  expect(replies.map(({ status }) => status)).toEqual([201, 201, 201]);
  const ids = await Promise.all(replies.map(async (reply) => DatasetView.parse(await reply.json()).id));
  expect(new Set(ids).size).toBe(1);
  const { keys, ids: left } = await kept(api);
  expect(left).toEqual([ids[0]]);
  expect(keys).toHaveLength(2);
});

test("a part that is sent again replaces the part before, and one that breaks off does not", async () => {
  const api = await openPlatform();
  const { id } = await begin(api);
  await put(api, id, 1, encoder.encode('{"question":"old"}\n'));
  await put(api, id, 1, FILE);
  const broken = new ReadableStream({
    type: "bytes",
    pull(controller) {
      controller.error(new Error("the caller went away"));
    },
  });
  const now = Date.now();
  const refused = await receivePart(env, api.scope, id, 1, broken, { now });
  expect(refused).toMatchObject({ ok: false, error: { code: "invalid_request" } });
  expect((await progress(api, id)).parts).toEqual([{ number: 1, bytes: FILE.length }]);
  const dataset = DatasetView.parse(await (await complete(api, id, FILE.length)).json());
  expect(dataset.sha256).toBe(await sha256(FILE));
});

test("an invalid row is named by its line, nothing is kept of it, and another part makes the file valid", async () => {
  const api = await openPlatform();
  const { id } = await begin(api, { environment: "gsm8k" });
  const wrong = encoder.encode(`${jsonLines(questions(2))}{"question":"q"}\n`);
  await put(api, id, 1, wrong);
  for (let times = 0; times < 2; times += 1) {
    expect(await errorOf(await complete(api, id, wrong.length))).toMatchObject({
      ...{ status: 400, code: "invalid_row", param: "rows[2].answer" },
      message: expect.stringContaining("line 3: answer is required"),
    });
  }
  expect(await kept(api)).toEqual({ keys: [], ids: [] });
  await put(api, id, 1, FILE);
  expect(await (await complete(api, id, FILE.length)).json()).toMatchObject({ rows: 3, environment: { id: "gsm8k" } });
});

test("a file that is not complete is refused with the part that is wrong", async () => {
  const api = await openPlatform();
  const { id } = await begin(api);
  const bytes = PART + 10;
  const refusal = async () => (await errorOf(await complete(api, id, bytes))).message;
  expect(await refusal()).toContain(`part 1 is missing: a file of ${bytes} bytes needs ${PART} bytes there`);
  await put(api, id, 1, FILE);
  await put(api, id, 2, FILE.slice(0, 10));
  expect(await refusal()).toContain(`part 1 has ${FILE.length} bytes`);
  await put(api, id, 1, new Uint8Array(PART));
  await put(api, id, 2, FILE);
  expect(await refusal()).toContain(`part 2 has ${FILE.length} bytes: a file of ${bytes} bytes needs 10 bytes there`);
  await put(api, id, 1, "\n\n");
  expect(await errorOf(await complete(api, id, 2))).toMatchObject({ status: 400, message: "the file has no rows" });
});

test("parts of another file than the upload was created for are refused, and nothing is kept", async () => {
  const api = await openPlatform();
  const digest = await sha256(encoder.encode("another file"));
  const { id } = await begin(api, { sha256: digest, bytes: FILE.length });
  await put(api, id, 1, FILE);
  expect(await errorOf(await complete(api, id, FILE.length))).toMatchObject({
    ...{ status: 400, param: "sha256" },
    message: expect.stringContaining(`${await sha256(FILE)}, and the upload was created for ${digest}`),
  });
  expect(await errorOf(await complete(api, id, 9))).toMatchObject({ status: 400, param: "bytes" });
  expect(await kept(api)).toEqual({ keys: [], ids: [] });
});

test.for<[what: string, number: string, body: BodyInit, type: string, status: number, message: string]>([
  ["no part", "1", "", "application/octet-stream", 400, "the part is empty"],
  ["a part number of 0", "0", "x", "application/octet-stream", 400, "number: "],
  ["a part number over the limit", "206", "x", "application/octet-stream", 400, "from 1 to 205"],
  ["a part number in words", "one", "x", "application/octet-stream", 400, "number: "],
  ["JSON lines", "1", "x", "application/jsonl", 415, "application/octet-stream"],
  ["a part that is too long", "1", new Uint8Array(PART + 1), "application/octet-stream", 413, `at most ${PART} bytes`],
])("%s is refused by name, and nothing is stored", async ([, number, body, type, status, message]) => {
  const { id } = await begin(platform);
  const refused = await errorOf(await put(platform, id, number, body, { "content-type": type }));
  expect(refused).toMatchObject({ status, message: expect.stringContaining(message) });
  expect((await progress(platform, id)).parts).toEqual([]);
});

test("a longer file than a request may have is refused with the ways to send it", async () => {
  const length = String(LIMITS.datasetBodyBytes + 1);
  const headers = { "content-type": "application/jsonl", "content-length": length };
  const reply = await platform.ask("/v1/datasets", { method: "POST", body: "{}", headers });
  const { status, message } = await errorOf(reply);
  expect(status).toBe(413);
  expect(message).toContain("POST /v1/dataset-uploads");
  expect(message).toContain("rollcall dataset push");
});

test("an upload is refused at once for a name that is taken, an unknown environment and a size over the limit", async () => {
  const api = await openPlatform();
  await uploaded(api, FILE, "name=taken");
  const refused = async (body: object) => errorOf(await api.post("/v1/dataset-uploads", body));
  expect(await refused({ name: "taken" })).toMatchObject({ status: 409, param: "name" });
  expect(await refused({ environment: "unknown" })).toMatchObject({ status: 404, param: "environment" });
  expect(await refused({ environment_args: {} })).toMatchObject({ status: 400, param: "environment_args" });
  expect(await refused({ bytes: LIMITS.datasetBytes + 1 })).toMatchObject({ status: 400, param: "bytes" });
  expect(await refused({ sha256: "x" })).toMatchObject({ status: 400, param: "sha256" });
});

test("a name that was taken during the upload is refused at the end, and the parts stay", async () => {
  const api = await openPlatform();
  const { id } = await begin(api, { name: "mine" });
  await put(api, id, 1, FILE);
  const other = await uploaded(api, FILE, "name=mine");
  expect(await errorOf(await complete(api, id, FILE.length))).toMatchObject({ status: 409, param: "name" });
  await api.ask(`/v1/datasets/${other.id}`, { method: "DELETE" });
  expect((await complete(api, id, FILE.length)).status).toBe(201);
});

test("an organisation has a maximum of unfinished uploads in all its projects; finished and expired ones do not count", async () => {
  const api = await openPlatform();
  const beside = await openPlatform(api.scope.orgId);
  const first = await begin(api);
  for (let more = 2; more < LIMITS.openUploads; more += 1) await beginUpload(env, api.scope, NOTHING_SAID, given());
  await begin(beside);
  const full = async () => errorOf(await beside.post("/v1/dataset-uploads", {}));
  expect(await full()).toMatchObject({
    ...{ status: 409, code: "conflict" },
    message: expect.stringMatching(/already has 50 unfinished uploads, the maximum: .*DELETE \/v1\/dataset-uploads/),
  });
  await put(api, first.id, 1, FILE);
  expect((await complete(api, first.id, FILE.length)).status).toBe(201);
  const { id } = await begin(beside);
  expect((await full()).status).toBe(409);
  await beside.ask(`/v1/dataset-uploads/${id}`, { method: "DELETE" });
  await begin(beside);
  const later = { ...given(), now: Date.now() + LIMITS.uploadMs };
  expect(await beginUpload(env, api.scope, NOTHING_SAID, later)).toMatchObject({ ok: true });
});

const NOTHING_SAID = { name: null, environment: null, environment_args: {}, bytes: null, sha256: null };
const given = () => ({ idempotencyKey: null, requestHash: "", now: Date.now() });

test("an expired upload takes no part and is not listed", async () => {
  const api = await openPlatform();
  const before = { ...given(), now: Date.now() - LIMITS.uploadMs };
  const made = await beginUpload(env, api.scope, NOTHING_SAID, before);
  if (!made.ok) throw new Error(made.error.message);
  const { id } = made.value.value;
  expect(await errorOf(await put(api, id, 1, FILE))).toMatchObject({
    ...{ status: 404 },
    message: expect.stringContaining("has expired: create another"),
  });
  expect(await (await api.ask("/v1/dataset-uploads")).json()).toMatchObject({ data: [] });
});

test("uploads are listed by the digest of their file, and one Idempotency-Key creates one upload", async () => {
  const api = await openPlatform();
  const digest = await sha256(FILE);
  const body = { sha256: digest };
  const key = { "idempotency-key": "k" };
  const made = await (await api.post("/v1/dataset-uploads", body, key)).json<{ id: string }>();
  const again = await api.post("/v1/dataset-uploads", body, key);
  expect(again.headers.get("idempotent-replayed")).toBe("true");
  expect(await again.json()).toEqual(made);
  await begin(api);
  const found = await (await api.ask(`/v1/dataset-uploads?sha256=${digest}`)).json();
  expect(found).toMatchObject({ data: [made], has_more: false });
});

test("a deleted dataset frees its file for another upload", async () => {
  const api = await openPlatform();
  const { id } = await begin(api);
  await put(api, id, 1, FILE);
  const { id: dataset } = DatasetView.parse(await (await complete(api, id, FILE.length)).json());
  await api.ask(`/v1/datasets/${dataset}`, { method: "DELETE" });
  expect((await api.ask(`/v1/dataset-uploads/${id}`)).status).toBe(404);
});

test.for(["deleted", "completed"] as const)("a part that arrives while the upload is %s is not kept", async (how) => {
  const api = await openPlatform();
  const { id } = await begin(api);
  await put(api, id, 1, FILE);
  const { promise: gate, resolve: open } = Promise.withResolvers<void>();
  const late = receivePart(env, api.scope, id, 2, bodyOf(FILE, gate), { now: Date.now() });
  if (how === "deleted") await endUpload(env, api.scope, id);
  else await completeUpload(env, api.scope, id, FILE.length, { now: Date.now() });
  open();
  const code = how === "deleted" ? "not_found" : "conflict";
  expect(await late).toMatchObject({ ok: false, error: { code } });
  expect(await partKeys(api)).toEqual([]);
});

/** The real bucket, which does `first` before the first call of `method`. */
function bucketBefore(method: "get" | "list", first: () => Promise<unknown>): R2Bucket {
  let isFirst = true;
  return new Proxy(env.STORE, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== "function") return member;
      return async (...args: unknown[]) => {
        const is = isFirst && name === method;
        if (is) isFirst = false;
        if (is) await first();
        return await Reflect.apply(member, target, args);
      };
    },
  });
}

test("a part that is replaced while the parts are read ends the completion, and nothing is kept", async () => {
  const api = await openPlatform();
  const { id } = await begin(api);
  await put(api, id, 1, FILE);
  const STORE = bucketBefore("get", () => put(api, id, 1, OTHER));
  const now = Date.now();
  expect(await completeUpload({ ...env, STORE }, api.scope, id, FILE.length, { now })).toMatchObject({
    ok: false,
    error: { code: "conflict", message: expect.stringContaining("part 1 was changed") },
  });
  expect(await kept(api)).toEqual({ keys: [], ids: [] });
  expect((await complete(api, id, FILE.length)).status).toBe(201);
});

test.for(["list", "get"] as const)(
  "a completion that another one overtakes before its first %s of R2 returns the dataset of the other",
  async (method) => {
    const api = await openPlatform();
    const { id } = await begin(api, { name: "overtaken" });
    await put(api, id, 1, FILE);
    const STORE = bucketBefore(method, () => complete(api, id, FILE.length));
    const made = await completeUpload({ ...env, STORE }, api.scope, id, FILE.length, { now: Date.now() });
    const { ids } = await kept(api);
    expect(ids).toHaveLength(1);
    expect(made).toMatchObject({ ok: true, value: { replayed: true, dataset: { id: ids[0] } } });
  },
);

/** Everything that an upload of one part does, from its creation to its completion. */
async function uploadAll(using: Env, scope: Scope): Promise<string> {
  const now = Date.now();
  const key = { idempotencyKey: "upload", requestHash: "the same", now };
  const begun = await beginUpload(using, scope, { ...NOTHING_SAID, name: "cut" }, key);
  if (!begun.ok) throw new Error(begun.error.message);
  const { id } = begun.value.value;
  const part = await receivePart(using, scope, id, 1, bodyOf(FILE), { now });
  // After a cut the part may have been taken, and the dataset made.
  if (!part.ok && part.error.code !== "conflict") throw new Error(part.error.message);
  const made = await completeUpload(using, scope, id, FILE.length, { now });
  if (!made.ok) throw new Error(made.error.message);
  return made.value.dataset.id;
}

test("an upload that is cut at any call of either store is continued by a repeat, and makes one dataset", async () => {
  let cuts = 0;
  for (let call = 0; ; call += 1) {
    let finished = false;
    for (const at of ["before", "after"] as const) {
      const api = await openPlatform();
      const cut = cutOffAt(call, at);
      const work = uploadAll(cut.env, api.scope).then(
        () => "finished",
        () => "buried",
      );
      finished = (await Promise.race([work, cut.reached.then(() => "cut")])) === "finished";
      if (finished) break;
      cuts += 1;
      const dataset = await uploadAll(env, api.scope);
      // What the cut attempt cleans up now is nothing of the other.
      cut.bury();
      expect(await work).toBe("buried");
      const where = `${at} call ${call}`;
      const { keys, ids } = await kept(api);
      expect(ids, where).toEqual([dataset]);
      expect(keys, where).toEqual(expect.arrayContaining(Object.values(uploadKeys(api.scope, dataset))));
      expect(await partKeys(api), where).toEqual([]);
      const rows = questions(3).map((row, index) => ({ index, row }));
      expect(await rowPages(api, dataset), where).toEqual([rows]);
    }
    if (finished) break;
  }
  expect(cuts).toBeGreaterThan(20);
});

test("a deletion that is cut at any call is finished by a repeat, and leaves no part", async () => {
  for (let call = 0; ; call += 1) {
    const { id } = await begin(platform);
    await put(platform, id, 1, FILE);
    const cut = cutOffAt(call, "after");
    const work = dropUpload(cut.env, platform.scope, id, new Subrequests()).then(
      () => "finished",
      () => "buried",
    );
    const how = await Promise.race([work, cut.reached.then(() => "cut")]);
    await dropUpload(env, platform.scope, id, new Subrequests());
    cut.bury();
    await work;
    const { objects } = await env.STORE.list({ prefix: partsFolder(platform.scope, id) });
    expect(objects).toEqual([]);
    expect((await platform.ask(`/v1/dataset-uploads/${id}`)).status).toBe(404);
    if (how === "finished") break;
  }
});
