/** Large files go in parts: what is sent, what is not sent again, and what is left after a failure. */
import { expect, test } from "vitest";
import { LIMITS } from "../../src/contract/limits.ts";
import type { UploadProgress } from "../../src/sdk/client.ts";
import { type Answer, type Asked, recorded, refusal } from "./recording-fetch.ts";

const PART = LIMITS.datasetPartBytes;
const ROW = `{"question":"${"x".repeat(1000)}"}\n`;
const FILE = new Blob([ROW.repeat(Math.ceil((2.5 * PART) / ROW.length))]);
const TOTAL = FILE.size;
const DATASET = { object: "dataset", id: "ds_1" };

interface Stored {
  readonly id: string;
  readonly name: string | null;
  readonly environment: string | null;
  readonly environment_args: object;
  readonly sha256: string | null;
  dataset_id: string | null;
  readonly parts: Map<number, Blob>;
}

const GOES_ON = 299;
const goOn = () => new Response(null, { status: GOES_ON });

/** The routes of uploads. `fault`: answers a request instead, unless it returns `goOn()`. */
function server(fault: Answer = goOn) {
  const uploads = new Map<string, Stored>();
  const client = recorded(async (asked, index) => {
    const instead = await fault(asked, index);
    if (instead.status !== GOES_ON) return instead;
    const [, , , id = "", action, number] = asked.path.split(/[/?]/);
    const upload = uploads.get(id);
    if (upload !== undefined) return await use(uploads, upload, asked, [action, Number(number)]);
    if (asked.method === "POST") return begin(uploads, asked.body);
    const data = [...uploads.values()].filter(({ sha256 }) => asked.path.endsWith(`sha256=${sha256}`));
    return Response.json({ data, has_more: false, last_id: null });
  });
  const sentParts = () => client.asked.flatMap(({ method, path }) => (method === "PUT" ? [path.slice(-1)] : []));
  return { ...client, uploads, sentParts };
}

function begin(uploads: Map<string, Stored>, body: BodyInit | null): Response {
  const said = { name: null, environment: null, environment_args: {}, sha256: null, ...JSON.parse(String(body)) };
  const made = { ...said, id: `up_${uploads.size + 1}`, dataset_id: null, parts: new Map() };
  uploads.set(made.id, made);
  return Response.json(made, { status: 201 });
}

async function use(
  uploads: Map<string, Stored>,
  upload: Stored,
  { method, body }: Asked,
  [action, number]: readonly [string | undefined, number],
): Promise<Response> {
  if (method === "DELETE") uploads.delete(upload.id);
  if (action === "parts") upload.parts.set(number, new Blob([await new Response(body).arrayBuffer()]));
  if (action === "complete") {
    upload.dataset_id = DATASET.id;
    return Response.json(DATASET, { status: 201 });
  }
  const parts = Array.from(upload.parts, ([at, { size }]) => ({ number: at, bytes: size }));
  return Response.json({ ...upload, parts });
}

async function textOf(parts: Map<number, Blob>): Promise<string> {
  return await new Blob(Array.from({ length: parts.size }, (_, at) => parts.get(at + 1) ?? "")).text();
}

async function* streamed() {
  const text = await FILE.text();
  for (let at = 0; at < text.length; at += 100_000) yield text.slice(at, at + 100_000);
}

test.each([
  ["a file", () => FILE, TOTAL],
  ["a stream", streamed, null],
])("%s of several parts is sent in parts, and the progress is reported", async (_what, source, total) => {
  const { client, uploads, asked } = server();
  const seen: UploadProgress[] = [];
  const made = await client.datasets.upload(source(), { name: "n", onProgress: (progress) => seen.push(progress) });
  expect(made).toEqual(DATASET);
  const [upload] = uploads.values();
  expect(upload).toMatchObject({ name: "n", dataset_id: DATASET.id });
  expect(await textOf(upload?.parts ?? new Map())).toBe(await FILE.text());
  expect(seen).toEqual([PART, 2 * PART, TOTAL].map((sent) => ({ sent, total })));
  expect(asked.at(-1)?.body).toBe(JSON.stringify({ bytes: TOTAL }));
});

test("the same file under the same name is continued after a break, and only missing parts are sent", async () => {
  let broken = true;
  const { client, sentParts, asked } = server(({ path }) => {
    if (broken && path.endsWith("/parts/2")) throw new TypeError("fetch failed");
    return goOn();
  });
  await expect(client.datasets.upload(FILE, { name: "n" })).rejects.toThrow("fetch failed");
  // Each call is tried three times.
  expect(sentParts()).toEqual(["1", "2", "2", "2"]);
  broken = false;
  expect(await client.datasets.upload(FILE, { name: "n" })).toEqual(DATASET);
  expect(sentParts().slice(4)).toEqual(["2", "3"]);
  const began = asked.filter(({ method, path }) => method === "POST" && path === "/v1/dataset-uploads");
  expect(began).toHaveLength(1);
});

test("an upload under another name, or with other arguments, is another upload", async () => {
  const { client, uploads } = server();
  const environment = "gsm8k";
  await client.datasets.upload(FILE);
  await client.datasets.upload(FILE, { name: "n" });
  await client.datasets.upload(FILE, { name: "n", environment, environmentArgs: { a: 1, b: 2 } });
  await client.datasets.upload(FILE, { name: "n", environment, environmentArgs: { a: 2 } });
  expect(uploads.size).toBe(4);
  await client.datasets.upload(FILE, { name: "n", environment, environmentArgs: { b: 2, a: 1 } });
  expect(uploads.size).toBe(4);
});

test("an upload that was completed returns its dataset again, without a part", async () => {
  const { client, sentParts } = server();
  await client.datasets.upload(FILE);
  expect(await client.datasets.upload(FILE)).toEqual(DATASET);
  expect(sentParts()).toEqual(["1", "2", "3"]);
});

test.each([
  ["a file with an invalid row", () => FILE, 400, "invalid_row", 0],
  ["a stream whose name is taken", streamed, 409, "conflict", 0],
  ["a file whose name is taken", () => FILE, 409, "conflict", 1],
])("after the refusal of %s, only an upload that can be continued is left", async (_, source, status, code, left) => {
  const { client, uploads } = server(({ path }) => (path.endsWith("/complete") ? refusal(status, code) : goOn()));
  await expect(client.datasets.upload(source())).rejects.toMatchObject({ code });
  expect(uploads.size).toBe(left);
});

test("an aborted upload throws the reason and keeps its parts", async () => {
  const controller = new AbortController();
  const { client, uploads } = server();
  const upload = client.datasets.upload(FILE, {
    signal: controller.signal,
    onProgress: () => controller.abort(new Error("enough")),
  });
  await expect(upload).rejects.toThrow("enough");
  expect([...uploads.values()].map(({ parts }) => [...parts.keys()])).toEqual([[1]]);
});
