/** `rollcall train` from its first to its last eval, checked by the task keys of all of its runs. */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { makeThrowAwayDirectory } from "../../../src/local/state-directory.ts";
import { rollcall } from "../../cli/run-rollcall.ts";
import { deathOf, endGroup, type Served, serve } from "../served-platform.ts";
import { testPort } from "../test-port.ts";
import { clientOf, taskKeysOf } from "./training-runs.ts";

const directory = makeThrowAwayDirectory();
let served: Served;

beforeAll(async () => {
  served = await serve(directory, testPort(20));
});
afterAll(async () => {
  endGroup(served);
  await deathOf(served.workerd);
  rmSync(directory, { recursive: true, force: true });
});

test("the evals before and after a shuffled training play the same tasks, none of which it trains on", async () => {
  const flags = "--shuffle --seed 5 --eval-examples 5 --max-steps 1 --group-size 2 --batch-size 30";
  // No rollout gets these right: their groups have no training signal, and are shipped anyway.
  const request = { filters: { zero_variance: "keep" }, holdout: 2 };
  const eval_ = { every: 1, num_examples: 4 };
  writeFileSync(join(directory, "request.json"), JSON.stringify({ ...request, eval: eval_ }));
  const rows = Array.from({ length: 15 }, (_, at) => ({ question: `${at}?`, answer: "#### x" }));
  writeFileSync(join(directory, "rows.jsonl"), rows.map((row) => JSON.stringify(row)).join("\n"));
  const files = ["--dataset", join(directory, "rows.jsonl"), "-f", join(directory, "request.json")];
  const argv = ["train", "gsm8k", ...flags.split(" "), ...files, "-t", "8", "--force", "--json"];
  const said = await rollcall(argv, { ROLLCALL_DIR: directory });
  expect(said.code, said.stderr).toBe(0);
  const client = clientOf(served);
  const { run_id } = JSON.parse(said.stdout);
  const { metadata, training } = await client.runs.get(run_id);
  expect(training?.holdout).toBe(5);
  const after: string[] = [];
  for await (const run of client.runs.list({})) {
    if (run.metadata["training_run"] === run_id) after.push(run.id);
  }
  const [before, again, trained] = await Promise.all(
    [metadata["eval_before"] ?? "", after[0] ?? "", run_id].map((id) => taskKeysOf(client, id)),
  );
  expect(before?.size).toBe(5);
  expect(again).toEqual(before);
  const began = await Promise.all(training?.evals.map(({ run_id }) => taskKeysOf(client, run_id ?? "")) ?? []);
  expect(began.map(({ size }) => size)).toContain(4);
  expect(began.flatMap((keys) => [...keys]).filter((key) => !before?.has(key))).toEqual([]);
  // Its rows without the held-out ones: ten of fifteen.
  expect(trained?.size).toBe(10);
  expect([...(trained ?? [])].filter((key) => before?.has(key))).toEqual([]);
});
