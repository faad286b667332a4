/** Tests the suite itself: what it compares, and that nothing passes silently. */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, describe, expect, test } from "vitest";
import { difference } from "./matches.ts";
import { faultOf } from "./run-vectors.ts";
import { faultsOf } from "./vector-file.ts";

const folder = mkdtempSync(join(tmpdir(), "rollcall-conformance-"));
afterAll(() => rmSync(folder, { recursive: true }));

describe("a result and the recorded one", () => {
  test.each([
    ["numbers within 1e-9", "boxed", 0.3333333333, 1 / 3],
    ["an object that holds more", "boxed", { a: 1 }, { a: 1, b: 2 }],
    ["a text that contains another, whatever its case", "boxed", [{ $contains: "NOPE" }], ["nope!"]],
    ["a text that is worded freely", "boxed", { $nonEmpty: true }, "x"],
    ["arguments that differ in spacing", "normalize_messages", { arguments: '{"a": 1}' }, { arguments: '{"a":1}' }],
    ["an informative chain", "error_data", { error_chain_repr: "a" }, { error_chain_repr: "b" }],
  ])("match: %s", (_, kind, want, actual) => {
    expect(difference(kind, want, actual)).toBeNull();
  });

  test.each([
    ["numbers 1e-6 apart", "boxed", 0.333333, 1 / 3],
    ["a number and no number", "boxed", 0, null],
    ["a number and its text", "boxed", 1, "1"],
    ["a number and a boolean", "boxed", 1, true],
    ["null and nothing", "boxed", { a: null }, {}],
    ["null and undefined", "boxed", { a: null }, { a: undefined }],
    ["lists of unequal length", "boxed", [1], [1, 2]],
    ["a list and an object", "boxed", {}, []],
    ["an empty text that should say something", "boxed", { $nonEmpty: true }, ""],
    ["a metric too many", "rubric_rollout", { metrics: { a: 1 } }, { metrics: { a: 1, b: 1 } }],
    ["a metric too many in a list", "rubric_group", { metrics: [{}] }, { metrics: [{ b: 1 }] }],
    ["a k too many", "pass_at_k", { pass_at_k: {} }, { pass_at_k: { "1": 1 } }],
    ["a tag too many", "xml_parse", { a: "x" }, { a: "x", b: null }],
    ["a text that looks like arguments", "xml_parse", { arguments: "[1 ]" }, { arguments: "[1]" }],
    ["other arguments", "normalize_messages", { arguments: "{}" }, { arguments: '{"a":1}' }],
  ])("do not match: %s", (_, kind, want, actual) => {
    expect(difference(kind, want, actual)).not.toBeNull();
  });
});

describe("a vector", () => {
  const malformed = { id: "v", kind: "xml_ctor", in: { fields: [["a"], "a"] } };

  test("that expects a failure holds only if the call throws with the recorded text", async () => {
    const failure = (mentions: string[]) => ({ error: "ValueError", mentions });
    expect(await faultOf({ ...malformed, out: failure(["a"]) })).toBeNull();
    expect(await faultOf({ ...malformed, out: failure(["zebra"]) })).toMatch(/zebra/);
    const sound = { ...malformed, in: { fields: ["a"] } };
    expect(await faultOf({ ...sound, out: failure([]) })).toMatch(/wanted ValueError/);
  });

  test("that expects a failure does not hold for an unreadable input", async () => {
    const unreadable = { id: "v", kind: "hash_answer", in: { text: 5 } };
    const fault = await faultOf({ ...unreadable, out: { error: "TypeError", mentions: [] } });
    expect(fault).toMatch(/cannot read this input/);
  });

  test("is compared with `expected` if it has one, even if that is null", async () => {
    const parsed = {
      id: "v",
      kind: "xml_parse_answer",
      in: { fields: ["answer"], completion: "" },
    };
    expect(await faultOf({ ...parsed, out: "x", expected: null })).toBeNull();
  });
});

test("a file with wrong counts, a repeated id or an unknown kind is reported", () => {
  const vector = { id: "v", kind: "odd", in: 1, out: 1 };
  const file = { total: 3, counts: { odd: 1, gone: 2 }, vectors: [vector, vector] };
  expect(faultsOf(file, new Set(["gone"]))).toEqual([
    "odd: 2 vectors, but counts says 1",
    "gone: 0 vectors, but counts says 2",
    "2 vectors, but total says 3",
    "no driver for the kind odd",
    "two vectors are named v",
  ]);
});

describe("npm run conformance", () => {
  const main = join(import.meta.dirname, "main.ts");
  const run = (...flags: string[]) =>
    promisify(execFile)(process.execPath, [main, ...flags, "--json"]).then(
      ({ stdout }) => ({ code: 0, report: JSON.parse(stdout) }),
      ({ code, stdout }) => ({ code, report: JSON.parse(stdout) }),
    );
  const vectors = [{ id: "v", kind: "hash_answer", in: { text: "a####b" }, out: "b" }];

  test("counts what holds in Node and in workerd, and exits 0 if everything does", async () => {
    const file = join(folder, "good.json");
    writeFileSync(file, JSON.stringify({ total: 1, counts: { hash_answer: 1 }, vectors }));
    expect(await run("--file", file)).toEqual({
      code: 0,
      report: {
        file,
        kinds: { hash_answer: { passed: 1, total: 1 } },
        passed: 1,
        total: 1,
        failures: [],
        faults: [],
      },
    });
  });

  test("exits 1 when the file's counts are wrong, and 2 when there is no file", async () => {
    const file = join(folder, "bad.json");
    writeFileSync(file, JSON.stringify({ total: 2, counts: {}, vectors }));
    const [bad, missing] = await Promise.all([
      run("--file", file, "--in", "node"),
      run("--file", join(folder, "none.json")),
    ]);
    expect(bad).toMatchObject({
      code: 1,
      report: { passed: 1, faults: [/counts/, /total/].map((part) => expect.stringMatching(part)) },
    });
    expect(missing).toMatchObject({ code: 2, report: { error: { param: "file" } } });
  });
});
