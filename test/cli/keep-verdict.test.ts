/** The verdict of an eval's gates in the metadata of its run. */
import { expect, test } from "vitest";
import type { GateResult } from "../../src/cli/eval/gates.ts";
import { keepVerdict } from "../../src/cli/eval/keep-verdict.ts";
import { RollcallClient } from "../../src/sdk/client.ts";

type Verdict = GateResult["verdict"];

/** What the platform is sent for these gates, and what is logged. */
async function sentFor(metadata: Record<string, string>, verdicts: readonly Verdict[], status = 200) {
  const sent: unknown[] = [];
  const lines: string[] = [];
  const client = new RollcallClient({
    baseUrl: "http://platform.test",
    fetch: async (input, init) => {
      const request = new Request(input, init);
      sent.push([request.method, new URL(request.url).pathname, await request.json()]);
      const error = { code: "forbidden", message: "the key lacks runs:write", type: "permission_error", param: null };
      return Response.json(status === 200 ? { id: "run_1" } : { error }, { status });
    },
  });
  const gates = verdicts.map((verdict) => ({ verdict }));
  await keepVerdict(client, { id: "run_1", metadata }, gates, (line) => lines.push(line));
  return { sent, lines };
}

const patch = (metadata: object) => [["PATCH", "/v1/runs/run_1", { metadata }]];

test("the worst verdict is added to the metadata", async () => {
  const { sent } = await sentFor({ branch: "main" }, ["passed", "failed", "inconclusive"]);
  expect(sent).toEqual(patch({ branch: "main", gate: "failed" }));
  expect((await sentFor({}, ["passed", "inconclusive"])).sent).toEqual(patch({ gate: "inconclusive" }));
  expect((await sentFor({ gate: "failed" }, ["passed"])).sent).toEqual(patch({ gate: "passed" }));
});

test("without gates, beside the user's own pair, or without room, nothing is sent", async () => {
  const full = Object.fromEntries(Array.from({ length: 16 }, (_, at) => [`key ${at}`, "x"]));
  expect((await sentFor({}, [])).sent).toEqual([]);
  expect((await sentFor({ gate: "the north one" }, ["failed"])).sent).toEqual([]);
  expect((await sentFor(full, ["failed"])).sent).toEqual([]);
});

test("a refusal is logged", async () => {
  const { lines } = await sentFor({}, ["failed"], 403);
  expect(lines).toEqual([expect.stringContaining("the key lacks runs:write")]);
});
