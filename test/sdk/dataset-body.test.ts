import { expect, test } from "vitest";
import type { DatasetSource } from "../../src/sdk/client.ts";
import { recorded, refusal } from "./recording-fetch.ts";

const LINES = '{"question":"ü"}\n{"question":"b"}\n';
const bytes = new Uint8Array(new TextEncoder().encode(LINES));

async function* mixed() {
  yield { question: "ü" };
  yield '{"question":';
  yield new TextEncoder().encode('"b"}\n');
}

test.each<[string, DatasetSource]>([
  ["text", LINES],
  ["bytes", bytes],
  ["a file", new Blob([LINES])],
  ["rows", [{ question: "ü" }, { question: "b" }]],
  ["a stream", new Blob([LINES]).stream()],
  ["rows, text and bytes one after the other", mixed()],
])("%s is uploaded as JSON lines", async (_what, source) => {
  const { client, asked } = recorded(() => Response.json({ id: "ds_1" }, { status: 201 }));
  const environmentArgs = { split: "test" };
  await client.datasets.upload(source, { name: "n", environment: "e@1", environmentArgs });
  const [request] = asked;
  expect(await new Response(request?.body).text()).toBe(LINES);
  expect(request?.headers.get("content-type")).toBe("application/jsonl");
  expect(decodeURIComponent(request?.path ?? "")).toBe(
    '/v1/datasets?name=n&environment=e@1&environment_args={"split":"test"}',
  );
});

test("an upload that ends early ends the iteration of its source", async () => {
  let ended = false;
  async function* endless() {
    try {
      for (;;) yield { question: "?" };
    } finally {
      ended = true;
    }
  }
  const { client } = recorded(() => refusal(403, "forbidden"));
  await expect(client.datasets.upload(endless())).rejects.toMatchObject({ code: "forbidden" });
  expect(ended).toBe(true);
});

test("an aborted upload throws the reason", async () => {
  const controller = new AbortController();
  const { client } = recorded(({ signal }) => {
    controller.abort(new Error("enough"));
    signal?.throwIfAborted();
    return Response.json({});
  });
  const upload = client.datasets.upload(LINES, { signal: controller.signal });
  await expect(upload).rejects.toThrow("enough");
});
