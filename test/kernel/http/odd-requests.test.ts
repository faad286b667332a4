import { expect, test } from "vitest";
import { RUN, RUN_REQUEST } from "./examples.ts";
import { openTestApi } from "./test-api.ts";

async function refusalOf(body: unknown): Promise<unknown> {
  const calls: unknown[] = [];
  const { post, reported } = await openTestApi({
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

test("nesting that is too deep is refused with its path, without a crash", async () => {
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

test.each([
  [
    '"seed":9007199254740993',
    "seed",
    "seed: the whole number 9007199254740993 has too many digits to be stored exactly",
  ],
  ['"metadata":{"id":12345678901234567890.0}', "metadata.id", "the whole number 12345678901234567890.0 has"],
  ['"dataset":[{"question":"q"},{"answer":-9007199254740993}]', "dataset[1].answer", "-9007199254740993 has too many"],
  ['"sampling":{"extra_body":{"a":[[1e400]]}}', "sampling.extra_body.a[0][0]", "the number 1e400 is too large to"],
  ['"environment_args":{"n":9.007199254740993E15}', "environment_args.n", "the number 9.007199254740993E15 has"],
  [
    '"dataset":[{"question":"q","info":{"a":1,"a":2}}]',
    "dataset[0].info.a",
    'dataset[0].info: the key "a" appears twice',
  ],
  ['"seed":1,"seed":2', "seed", 'the key "seed" appears twice'],
])("what JSON.parse would lose of a body is refused, naming the field: %s", async (members, param, message) => {
  const { seed: _seed, dataset: _dataset, metadata: _metadata, ...rest }: Record<string, unknown> = { ...RUN_REQUEST };
  const text = JSON.stringify({ ...rest, sampling: undefined, environment_args: undefined });
  expect(await refusalOf(text.replace(/}$/, `,${members}}`))).toMatchObject({
    error: { code: "invalid_request", param, message: expect.stringContaining(message) },
  });
});

test("a body of more values than a request may have is refused before it is processed", async () => {
  const wide = (values: number) => JSON.stringify({ ...RUN_REQUEST, dataset: Array(values).fill(0) });
  expect(await refusalOf(wide(100_000))).toMatchObject({
    error: { code: "invalid_request", param: null, message: expect.stringContaining("more than 100000 JSON values") },
  });
  expect(await refusalOf(wide(90_000))).toMatchObject({ error: { param: "dataset[0]" } });
});

/** Its sender disconnects, or sends an invalid HTTP body: the runtime reports both with an error. */
function brokenBody(): ReadableStream<Uint8Array> {
  return new ReadableStream({
    type: "bytes",
    pull: (controller) => controller.error(new Error("Network connection lost.")),
  });
}

test.each([
  ["/v1/secrets", "application/json", "the body broke off before its end: send it again"],
  ["/v1/datasets?odd=1", "application/jsonl", "odd is not a known field"],
])("a body to %s that breaks off is the sender's fault", async (path, type, message) => {
  const { ask, reported } = await openTestApi();
  const init = { method: "POST", headers: { "content-type": type }, body: brokenBody() };
  const reply = await ask(path, init);
  expect(reply.status).toBe(400);
  expect(await reply.json()).toMatchObject({ error: { message } });
  expect(reported).toEqual([]);
});

test("a member called __proto__ is refused instead of being lost", async () => {
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
  ["http://127.0.0.1/v1\r\nX-Key: y", "endpoint.base_url"],
  ["http://127.0.0.1/v1\n", "endpoint.base_url"],
  ["http://127.0.0\t.1/v1", "endpoint.base_url"],
  [" http://127.0.0.1/v1", "endpoint.base_url"],
  ["http:\\\\127.0.0.1\\v1", "endpoint.base_url"],
  ["http://127.0.0.1\\@gpu.example/v1", "endpoint.base_url"],
  ["http://127.0.0.1/\u0000v1", "endpoint.base_url"],
  ["http://gpu.example/\u202e1v", "endpoint.base_url"],
])(
  "the address %j is refused, because it is shown to readers of the run and called unchanged",
  async (base_url, param) => {
    expect(await refusalOf({ ...RUN_REQUEST, endpoint: { base_url } })).toMatchObject({
      error: { code: "invalid_request", param },
    });
  },
);

test.each(["", "sk\nX: y", "schlüssel"])(
  "the key %j is refused, because it cannot be sent in a header",
  async (api_key) => {
    const endpoint = { base_url: "http://127.0.0.1/v1", api_key };
    expect(await refusalOf({ ...RUN_REQUEST, endpoint })).toMatchObject({
      error: { code: "invalid_request", param: "endpoint.api_key" },
    });
  },
);

test("an unknown query parameter is refused on every route, a known one is accepted", async () => {
  const { ask } = await openTestApi({ readRun: async () => ({ ok: true, value: RUN }) });
  expect((await ask(`/v1/runs/${RUN.id}?verbose=1`)).status).toBe(400);
  expect((await ask(`/v1/environments?x=1`)).status).toBe(400);
  expect((await ask(`/v1/runs?metadata[__proto__]=x`)).status).toBe(400);
  expect((await ask(`/v1/runs/${RUN.id}`)).status).toBe(200);
});

const HIDDEN = ["a\u0000b", "a\nb", "a\u007fb", "a\ud800b", "a\u202eb", "a\u2066b", "a\u200eb", "a\u2028b"];

test.each(HIDDEN)("a name that contains %j is refused, naming its field, wherever names are given", async (name) => {
  const named = JSON.stringify(name)
    .slice(1, -1)
    .replace(/[^ -~]/g, (mark) => `\\u${mark.charCodeAt(0).toString(16).padStart(4, "0")}`);
  const judge = { endpoint: "e", model: "m" };
  const refused: [object, string][] = [
    [{ name }, "name"],
    [{ model: name }, "model"],
    [{ metadata: { branch: name } }, "metadata.branch"],
    [{ metadata: { [name]: "main" } }, `metadata["${named}"]`],
    [{ judges: { default: { ...judge, model: name } } }, "judges.default.model"],
    [{ judges: { [name]: judge } }, `judges["${named}"]`],
  ];
  for (const [fields, param] of refused) {
    expect(await refusalOf({ ...RUN_REQUEST, ...fields })).toMatchObject({
      error: {
        code: "invalid_request",
        param,
        message: expect.stringContaining("control characters"),
      },
    });
  }
  const { post, ask } = await openTestApi();
  const patch = { method: "PATCH", headers: { "content-type": "application/json" } };
  const others = [
    await post("/v1/endpoints", { name, base_url: "http://127.0.0.1/v1" }),
    await post("/v1/secrets", { name, value: "x" }),
    await ask(`/v1/runs/${RUN.id}`, { ...patch, body: JSON.stringify({ name }) }),
    await post("/v1/dataset-uploads", { name }),
    await ask(`/v1/datasets?${new URLSearchParams({ name })}`, { method: "POST", body: "{}" }),
  ];
  for (const reply of others) {
    expect([reply.status, (await reply.json<{ error: { param: string } }>()).error.param]).toEqual([400, "name"]);
  }
});

test("a name in any language, with emoji, is accepted unchanged", async () => {
  const accepted: string[] = [];
  const { post } = await openTestApi({
    acceptRun: async (_env, _scope, { name }) => {
      accepted.push(name ?? "");
      return { ok: true, value: { run: RUN, replayed: false } };
    },
  });
  const names = ["Überprüfung №5", "経験 1", "שלום", "👩‍🔬 a\u00a0b"];
  for (const name of names) {
    expect((await post("/v1/runs", { ...RUN_REQUEST, name, metadata: { [name]: name } })).status).toBe(202);
  }
  expect(accepted).toEqual(names);
});

test("a query parameter that is given twice is refused by name, because it is unclear which was meant", async () => {
  const { ask } = await openTestApi({ readRun: async () => ({ ok: true, value: RUN }) });
  for (const [query, param] of [
    ["limit=1&limit=2", "limit"],
    ["limit=1&limit=1", "limit"],
    ["metadata[a]=1&metadata[a]=2", "metadata[a]"],
    ["order=asc&limit=2&order=desc", "order"],
  ]) {
    const reply = await ask(`/v1/runs?${query}`);
    expect([reply.status, await reply.json()]).toMatchObject([400, { error: { code: "invalid_request", param } }]);
  }
  expect((await ask("/v1/runs?metadata[a]=1&metadata[b]=1")).status).toBe(200);
});

test("a compressed body is refused as compressed, not as bad JSON", async () => {
  const stream = new Blob([JSON.stringify(RUN_REQUEST)]).stream();
  const zipped = await new Response(stream.pipeThrough(new CompressionStream("gzip"))).arrayBuffer();
  const { ask, post } = await openTestApi({
    acceptRun: async () => ({ ok: true, value: { run: RUN, replayed: false } }),
  });
  for (const [path, type] of [
    ["/v1/runs", "application/json"],
    ["/v1/datasets", "application/jsonl"],
  ] as const) {
    const headers = { "content-type": type, "content-encoding": "gzip" };
    const reply = await ask(path, { method: "POST", headers, body: zipped });
    expect([reply.status, reply.headers.get("accept-encoding")]).toEqual([415, "identity"]);
    expect(await reply.json()).toMatchObject({
      error: { code: "invalid_request", message: expect.stringContaining("uncompressed") },
    });
  }
  const plain = await post("/v1/runs", RUN_REQUEST, { "content-encoding": "identity" });
  expect(plain.status).toBe(202);
});

test("input that a refusal repeats is short and on one line", async () => {
  const long = "x".repeat(100_000);
  const { ask } = await openTestApi({
    readEnvironment: async (_env, _scope, id) => ({
      ok: false,
      error: { code: "not_found", message: `no environment ${id}`, param: "id" },
    }),
  });
  const said = [
    await refusalOf({ ...RUN_REQUEST, [long]: 1 }),
    await refusalOf({ ...RUN_REQUEST, metadata: { [long]: "x" } }),
    await (await ask(`/v1/environments/${long.slice(0, 5000)}%0a%00%E2%80%AEx`)).json(),
    await (await ask(`/v1/${long.slice(0, 5000)}`)).json(),
    await (await ask(`/v1/runs?${long.slice(0, 5000)}=1`)).json(),
  ];
  for (const reply of said) {
    const { error } = reply as { error: { message: string; param: string | null } };
    expect(error.message.length).toBeLessThan(400);
    expect(error.param?.length ?? 0).toBeLessThan(400);
    expect(error.message).toContain("x…");
  }
  const reply = await ask("/v1/environments/a%0Ab%E2%80%AEc");
  expect(await reply.json()).toMatchObject({
    error: { message: "no environment a\\u000ab\\u202ec" },
  });
});

test("a request id that is not a valid header is replaced, not repeated", async () => {
  const { ask } = await openTestApi();
  const asked = async (id: string) =>
    (await ask("/healthz", { headers: { "x-request-id": id } })).headers.get("x-request-id");
  expect(await asked("mine-1")).toBe("mine-1");
  for (const id of ["a b", "a,b", "x".repeat(129), "a%0d%0ab"]) {
    expect(await asked(id)).toMatch(/^[0-9a-f-]{36}$/);
  }
});
