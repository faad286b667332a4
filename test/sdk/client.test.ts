import { createServer, type IncomingMessage, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterEach, expect, test } from "vitest";
import { ApiRequestError, RollcallClient, type RunEvent } from "../../src/sdk/client.ts";

const servers: Server[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

/** A client of a scripted server on loopback. */
async function serve(listener: RequestListener): Promise<RollcallClient> {
  const server = createServer(listener);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return new RollcallClient({ baseUrl: `http://127.0.0.1:${port}/`, apiKey: "rk_test" });
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

const text = async (request: IncomingMessage) => {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part);
  return Buffer.concat(parts).toString();
};

test("a run is created with the key, the body and its own idempotency key", async () => {
  const seen: unknown[] = [];
  const client = await serve(async (request, response) => {
    const { authorization, "idempotency-key": idempotency } = request.headers;
    seen.push([request.method, request.url, authorization, idempotency, await text(request)]);
    response.writeHead(202, { "content-type": "application/json" }).end('{"id":"run_1"}');
  });
  const request = { environment: "e", model: "m", endpoint: { base_url: "http://x/v1" } };
  expect(await client.runs.create(request)).toEqual({ id: "run_1" });
  await client.runs.create(request, { idempotencyKey: "mine" });
  const body = JSON.stringify(request);
  expect(seen).toEqual([
    ["POST", "/v1/runs", "Bearer rk_test", expect.stringMatching(/^[\w-]{36}$/), body],
    ["POST", "/v1/runs", "Bearer rk_test", "mine", body],
  ]);
});

test("a shared report is requested with its link's token only, which is not in the URL", async () => {
  const seen: unknown[] = [];
  const client = await serve((request, response) => {
    seen.push([request.url, request.headers.authorization]);
    response.end("{}");
  });
  await client.reportLinks.read("rkr_a1");
  await client.reportLinks.read("\u2028 of a broken link");
  expect(seen).toEqual([
    ["/v1/shared-report", "Bearer rkr_a1"],
    ["/v1/shared-report", "Bearer %E2%80%A8%20of%20a%20broken%20link"],
  ]);
});

test("an error of the API has its code, field and status", async () => {
  const client = await serve((_request, response) => {
    const error = {
      code: "invalid_row",
      message: "line 17: question is required",
      param: "rows[16].question",
      type: "invalid_request_error",
    };
    response.writeHead(400).end(JSON.stringify({ error }));
  });
  const thrown = await client.runs.get("run_1").catch((error: unknown) => error);
  expect(thrown).toBeInstanceOf(ApiRequestError);
  expect(thrown).toMatchObject({
    status: 400,
    code: "invalid_row",
    param: "rows[16].question",
    message: "line 17: question is required",
  });
});

test("an error that is not JSON still has its status", async () => {
  const client = await serve((_request, response) => {
    response.writeHead(502).end("<h1>bad gateway</h1>");
  });
  await expect(client.runs.get("run_1")).rejects.toMatchObject({
    status: 502,
    code: "unreadable",
    message: "status 502: <h1>bad gateway</h1>",
  });
});

test("an event stream cut in the middle of an event continues after the last complete one", async () => {
  const asked: (string | undefined)[] = [];
  const client = await serve((request, response) => {
    const after = request.headers["last-event-id"];
    asked.push(typeof after === "string" ? after : undefined);
    response.writeHead(200, { "content-type": "text/event-stream" });
    if (after === undefined) {
      response.write('retry: 1\n\n: here\n\nid: 1\nevent: rollout.finished\ndata: {"turns":1}\n\n');
      response.write("id: 2\nevent: rollout.finished\ndata: {", () => response.destroy());
    } else {
      response.write('id: 2\r\nevent: rollout.finished\r\ndata: {"turns"\r\ndata: :2}\r\n\r\n');
      response.end("id: 3\nevent: run.completed\ndata: {}\n\n");
    }
  });
  expect(await collect<RunEvent>(client.runs.events("run_1"))).toEqual([
    { id: 1, event: "rollout.finished", data: { turns: 1 } },
    { id: 2, event: "rollout.finished", data: { turns: 2 } },
    { id: 3, event: "run.completed", data: {} },
  ]);
  expect(asked).toEqual([undefined, "1"]);
});

test("a stream without further events ends at once", async () => {
  const client = await serve((_request, response) => response.writeHead(204).end());
  expect(await collect(client.runs.events("run_1", { after: 9 }))).toEqual([]);
});

test("a stream of an unknown run ends with the error, without a retry", async () => {
  let asked = 0;
  const client = await serve((_request, response) => {
    asked += 1;
    response.writeHead(404).end('{"error":{"code":"not_found","message":"no such run"}}');
  });
  await expect(collect(client.runs.events("run_1"))).rejects.toMatchObject({ code: "not_found" });
  expect(asked).toBe(1);
});

test("an aborted stream throws the reason of the abort", async () => {
  const controller = new AbortController();
  const client = await serve((_request, response) => {
    response.writeHead(200);
    response.write(": here\n\n", () => controller.abort(new Error("enough")));
  });
  const events = collect(client.runs.events("run_1", { signal: controller.signal }));
  await expect(events).rejects.toThrow("enough");
});

test("results continue over every page", async () => {
  const client = await serve((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "", "http://x");
    expect([pathname, searchParams.get("outcome")]).toEqual(["/v1/runs/run_1/results", "scored"]);
    const after = Number(searchParams.get("after") ?? 0);
    const next = `<${pathname}?outcome=scored&after=${after + 2}>; rel="next"`;
    response.writeHead(200, after < 2 ? { link: next } : {});
    response.end(`{"rollout_id":"ro_${after}"}\n{"rollout_id":"ro_${after + 1}"}\n`);
  });
  const rows = await collect(client.runs.results("run_1", { outcome: "scored" }));
  expect(rows.map((row) => row.rollout_id)).toEqual(["ro_0", "ro_1", "ro_2", "ro_3"]);
});

const MIB = 1024 * 1024;

/** Bytes of the array buffers that are still referenced. */
function heldBytes(): number {
  setFlagsFromString("--expose-gc");
  runInNewContext("gc")();
  return process.memoryUsage().arrayBuffers;
}

test("a stream is read while it is sent, and sent parts are not kept in memory", async () => {
  const client = await serve((request, response) => {
    const answer = request.method === "PUT" ? {} : { id: "up_1", dataset_id: null, parts: [] };
    request.resume().on("end", () => response.writeHead(200).end(JSON.stringify(answer)));
  });
  const held: number[] = [];
  async function* file() {
    for (let sent = 0; sent < 64; sent += 1) {
      yield new Uint8Array(MIB);
      if (sent % 8 === 7) held.push(heldBytes());
    }
  }
  await client.datasets.upload(file());
  // If sent parts were kept, memory would grow by 8 MiB at every measurement; other objects of the process vary.
  const grown = held.slice(1).map((bytes, at) => bytes - (held[at] ?? 0));
  expect(grown).toHaveLength(7);
  expect(Math.min(...grown)).toBeLessThan(4 * MIB);
});
