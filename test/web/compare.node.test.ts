/** What the page of comparisons computes: the roles of the runs in its address, the pair, the choices and the cost. */
import { expect, test } from "vitest";
import type { RunView } from "../../src/contract/run.ts";
import { addressOf, askedOf, kindForFirst } from "../../src/web/pages/compare/asked.ts";
import { choicesOf } from "../../src/web/pages/compare/choices.ts";
import { costDifferenceText } from "../../src/web/pages/compare/cost-difference.ts";
import { pairOf } from "../../src/web/pages/compare/pair.ts";
import { shortNameOf } from "../../src/web/pages/compare/short-name.ts";
import { aRun } from "../cli/a-run.ts";

test.each([
  ["a candidate is compared with all others", { runs: "a,b,c", candidate: "b" }, "b", "candidate", ["a", "c"]],
  ["an older link to three runs keeps its baseline", { runs: "a,b,c", baseline: "b" }, "b", "baseline", ["a", "c"]],
  ["an older link without a baseline has the first run", { runs: "a,b,c" }, "a", "baseline", ["b", "c"]],
  [
    "of two runs the one that is not the baseline is the candidate",
    { runs: "a,b", baseline: "b" },
    "a",
    "candidate",
    ["b"],
  ],
  ["of two runs without roles the second is the candidate", { runs: "a,b" }, "b", "candidate", ["a"]],
  ["a single run is the candidate", { runs: "a" }, "a", "candidate", []],
  ["there may be no runs", {}, "", "candidate", []],
  ["a candidate that is not among the runs is ignored", { runs: "a,b", candidate: "x" }, "b", "candidate", ["a"]],
  ["a run that is named twice counts once", { runs: "a,a,,b", candidate: "a" }, "a", "candidate", ["b"]],
])("%s", (_, search, first, role, others) => {
  expect(askedOf(search)).toMatchObject({ first, role, others });
});

test("at most eight runs are compared", () => {
  const { runs, others } = askedOf({ runs: "abcdefghij".split("").join(","), candidate: "a" });
  expect([runs.length, others.length]).toEqual([8, 7]);
});

test("the address of the roles gives the same roles, and a removed first run is replaced", () => {
  const asked = askedOf({ runs: "a,b,c", baseline: "b" });
  expect(askedOf(addressOf(asked))).toEqual(asked);
  expect(askedOf(addressOf({ ...asked, role: "candidate" }))).toMatchObject({ first: "b", role: "candidate" });
  expect(addressOf({ ...asked, runs: ["a", "c"] })).toEqual({ runs: "a,c", baseline: "a", candidate: undefined });
  expect(addressOf({ runs: [], first: "a", role: "candidate" })["runs"]).toBeUndefined();
});

test("tasks are read from the side of the first run", () => {
  expect(kindForFirst({ kind: "worse", role: "candidate" })).toBe("worse");
  expect(kindForFirst({ kind: "worse", role: "baseline" })).toBe("better");
  expect(kindForFirst({ kind: "better", role: "baseline" })).toBe("worse");
  expect(kindForFirst({ kind: "flipped", role: "baseline" })).toBe("flipped");
});

test("the pair is the one that the address names, else a baseline and a candidate", () => {
  const sides = ["a", "b", "c"].map((run) => ({ run }));
  const pair = (role: "candidate" | "baseline", from?: string, to?: string) => {
    const found = pairOf(sides, { first: "c", role, from, to });
    return found === null ? null : [found.old, found.fresh, ...found.rest].map(({ run }) => run).join("");
  };
  expect(pair("candidate")).toBe("acb");
  expect(pair("baseline")).toBe("cab");
  expect(pair("candidate", "b", "a")).toBe("bac");
  expect(pair("candidate", "b", "x")).toBe("acb");
  expect(pair("candidate", "b", "b")).toBe("acb");
  expect(pairOf([{ run: "c" }], { first: "c", role: "candidate", from: undefined, to: undefined })).toBeNull();
});

const named = (id: string, change: Partial<RunView>): RunView => aRun({ scored: 10 }, { id, ...change });

test("runs of the same environment and dataset come first, each once", () => {
  const gsm8k = { id: "gsm8k", version: "1.0.0", digest: "sha256:1" };
  const like = named("run_1", { environment: gsm8k, dataset: "ds_1" });
  const others = [
    named("run_2", { environment: { ...gsm8k, id: "math" }, dataset: "ds_1" }),
    named("run_3", { environment: gsm8k, dataset: "ds_2" }),
    named("run_4", { environment: { ...gsm8k, version: "2.0.0" }, dataset: "ds_1" }),
    like,
  ];
  const texts = (parts: ReturnType<typeof choicesOf>) =>
    parts.map(({ title, runs }) => [title, ...runs.map(({ id }) => id)]);
  expect(texts(choicesOf([...others, ...others], like))).toEqual([
    ["Same environment and dataset", "run_4", "run_1"],
    ["Same environment, another dataset", "run_3"],
    ["Other runs", "run_2"],
  ]);
  expect(texts(choicesOf(others, undefined))).toEqual([["Runs", "run_2", "run_3", "run_4", "run_1"]]);
});

test("a column has the name or the model of its run, and the end of the id only if it is not the only one", () => {
  const runs = [
    named("run_000001", { name: "nightly" }),
    named("run_000002", { name: "nightly" }),
    named("run_000003", { name: null, model: "qwen" }),
  ];
  expect(["run_000001", "run_000003", "run_000009"].map((id) => shortNameOf(runs, id))).toEqual([
    "nightly …000001",
    "qwen",
    "…000009",
  ]);
});

test("the cost of two runs is compared per rollout and in all, and not if a part is unknown", () => {
  const paid = (policy_micros: number | null, scored: number): RunView => {
    return aRun({ scored, dispatched: scored }, { cost: { policy_micros, judge_micros: 0, charged_micros: 0 } });
  };
  expect(costDifferenceText(paid(3_000_000, 10), paid(1_000_000, 5))).toBe("+$0.10 per rollout, +$2.00 in all");
  expect(costDifferenceText(paid(1_000_000, 5), paid(3_000_000, 10))).toBe("−$0.10 per rollout, −$2.00 in all");
  expect(costDifferenceText(paid(2, 1), paid(2, 1))).toBe("$0.00 per rollout, $0.00 in all");
  expect(costDifferenceText(paid(0, 0), paid(5_000_000, 1))).toBe("−$5.00 in all");
  expect(costDifferenceText(paid(null, 1), paid(2, 1))).toBe("–");
  expect(costDifferenceText(undefined, paid(2, 1))).toBe("–");
});
