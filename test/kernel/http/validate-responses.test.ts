/** The check of all replies gets wrong replies: no other test would notice if it let them pass. */
import { expect, test } from "vitest";
import { RESULT_ROW, RUN, RUN_EVENT } from "./examples.ts";
import { checkReply } from "./validate-responses.ts";

const RUN_PATH = `/v1/runs/${RUN.id}`;

function reply(body: unknown, { status = 200, type = "application/json", id = "r1" } = {}) {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return new Response(text, { status, headers: { "content-type": type, "x-request-id": id } });
}

const lines = (...rows: unknown[]) => rows.map((row) => `${JSON.stringify(row)}\n`).join("");
const frame = ({ id, event, data }: { id: unknown; event: string; data: unknown }) =>
  `id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
const results = (body: string) => reply(body, { type: "application/jsonl" });
const events = (body: string) => reply(body, { type: "text/event-stream" });
const error = { code: "not_found", message: "no run", param: "id", type: "invalid_request_error" };

test.each([
  ["a run", RUN_PATH, reply(RUN)],
  ["an error with a documented status", RUN_PATH, reply({ error }, { status: 404 })],
  ["a path that is not there", "/v1/nothing", reply({ error }, { status: 404 })],
  ["rows", `${RUN_PATH}/results`, results(lines(RESULT_ROW, RESULT_ROW))],
  ["no rows", `${RUN_PATH}/results`, results("")],
  ["events", `${RUN_PATH}/events`, events(`: here\n\n${frame(RUN_EVENT)}retry: 1000\n\n`)],
  ["a page", "/docs", reply("<!doctype html>", { type: "text/html; charset=utf-8" })],
])("%s passes and can still be read", async (_what, path, given) => {
  const bytes = await given.clone().arrayBuffer();
  expect(await (await checkReply("get", path, given)).arrayBuffer()).toEqual(bytes);
});

const { status: _, ...incomplete } = RUN;
test.each([
  ["a member nobody documented", RUN_PATH, reply({ ...RUN, extra: 1 }), "extra"],
  [
    "an unknown member deep inside",
    RUN_PATH,
    reply({ ...RUN, report: { ...RUN.report, reward: { ...RUN.report.reward, median: 1 } } }),
    "median",
  ],
  ["a missing member", RUN_PATH, reply(incomplete), "status"],
  ["a member of the wrong type", RUN_PATH, reply({ ...RUN, seed: "7" }), "seed"],
  ["a status nobody documented", RUN_PATH, reply(RUN, { status: 201 }), "status is not documented"],
  ["another content type", RUN_PATH, reply(RUN, { type: "text/plain" }), "text/plain"],
  ["an error without all four members", RUN_PATH, reply({ error: {} }, { status: 404 }), "message"],
  ["a success where no route is", "/v1/nothing", reply(RUN), "status is not documented"],
  ["no request id", RUN_PATH, reply(RUN, { id: "" }), "no x-request-id"],
  ["a wrong row", `${RUN_PATH}/results`, results(lines(RESULT_ROW, { reward: 1 })), "rollout_id"],
  ["a last line without an end", `${RUN_PATH}/results`, results("{}"), "no end"],
  [
    "an event whose data is another's",
    `${RUN_PATH}/events`,
    events(frame({ ...RUN_EVENT, event: "run.completed" })),
    "not as documented",
  ],
  [
    "an event of an unknown name",
    `${RUN_PATH}/events`,
    events(frame({ ...RUN_EVENT, event: "run.paused" })),
    "not as documented",
  ],
])("%s fails", async (_what, path, given, words) => {
  const read = checkReply("get", path, given).then((checked) => checked.arrayBuffer());
  await expect(read).rejects.toThrow(words);
});

test("a reply of 204 has no body", async () => {
  const headers = { "x-request-id": "r1" };
  const empty = new Response(null, { status: 204, headers });
  expect((await checkReply("get", `${RUN_PATH}/events`, empty)).status).toBe(204);
});
