import { expect, test } from "vitest";
import { baselineArgument, findBaseline } from "../../src/cli/eval/gates.ts";
import type { RunView } from "../../src/contract/run.ts";
import { recorded } from "../sdk/recording-fetch.ts";
import { aRun } from "./a-run.ts";

const AT = { environment: "calculator", apart: null };
const WANTED = { metadata: { branch: "main", size: "4b" } };

function run(id: string, status: RunView["status"]): RunView {
  return { ...aRun({}, { status }), id };
}

/** A platform that lists these runs, newest first; `now`: the runs as it returns them one by one. */
function platform(listed: readonly RunView[], now: readonly RunView[] = listed) {
  return recorded(({ path }) => {
    const one = now.find(({ id }) => path === `/v1/runs/${id}`);
    return Response.json(one ?? { object: "list", data: listed, has_more: false });
  });
}

test("the newest completed run with the pairs is the baseline, and not the run itself", async () => {
  const fork = { ...run("run_e", "completed"), forked_from: { rollout_id: "ro_1", turn: 0 } };
  const failed = run("run_d", "failed");
  const runs = [fork, failed, run("run_c", "completed"), run("run_b", "completed")];
  const { client, asked } = platform(runs);
  const found = await findBaseline(client, WANTED, AT);
  expect(found).toEqual({
    id: "run_c",
    why: "the newest completed run of calculator with branch=main, size=4b, of 2026-11-21 10:52:09Z",
  });
  expect(decodeURIComponent(asked[0]?.path ?? "")).toContain(
    "environment=calculator&metadata[branch]=main&metadata[size]=4b",
  );
  expect((await findBaseline(client, WANTED, { ...AT, apart: "run_c" })).id).toBe("run_b");
});

test("a run that a list has as still running is read itself: lists may lag", async () => {
  const listed = [run("run_c", "running"), run("run_b", "queued"), run("run_a", "completed")];
  const { client } = platform(listed, [run("run_c", "running"), run("run_b", "completed")]);
  expect((await findBaseline(client, WANTED, AT)).id).toBe("run_b");
});

test("without a baseline the error says how the first one is made", async () => {
  const { client } = platform([run("run_c", "failed")]);
  await expect(findBaseline(client, WANTED, AT)).rejects.toMatchObject({
    exit: 2,
    message: expect.stringContaining("with --metadata branch=main --metadata size=4b"),
  });
});

test("a run named by its id must have ended", async () => {
  const { client } = platform([], [run("run_a", "completed"), run("run_b", "running")]);
  expect((await findBaseline(client, { run: "run_a" }, AT)).id).toBe("run_a");
  await expect(findBaseline(client, { run: "run_b" }, AT)).rejects.toThrow("it is running");
});

test("a baseline is one run, or pairs", () => {
  const pairs = () => ({ branch: "main" });
  expect(baselineArgument([], pairs)).toBeNull();
  expect(baselineArgument(["run_a"], pairs)).toEqual({ run: "run_a" });
  expect(baselineArgument(["branch=main"], pairs)).toEqual({ metadata: { branch: "main" } });
  expect(() => baselineArgument(["run_a", "run_b"], pairs)).toThrow("one run, or k=v pairs");
});
