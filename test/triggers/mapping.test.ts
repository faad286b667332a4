import { expect, test } from "vitest";
import { parseKeepingNumbers } from "../../src/contract/exact-json.ts";
import type { Json, JsonObject } from "../../src/contract/json.ts";
import { checkWhen, filled, fillingOf, VALUE_CHARACTERS } from "../../src/triggers/mapping.ts";
import { readPayloadPath, readTarget, valueIn } from "../../src/triggers/payload-path.ts";

const PUSH = {
  ref: "refs/heads/main",
  deleted: false,
  head: { id: "0d1a", n: null },
  commits: [{ id: "a" }, { id: "b" }],
};

function at(path: string, payload: Json = PUSH): Json | undefined {
  const read = readPayloadPath(path);
  if (!read.ok) throw new Error(read.message);
  return valueIn(payload, read.steps);
}

test("a path finds names and indexes, and only the payload's own properties", () => {
  expect([at("$"), at("$.ref"), at("$.commits[1].id"), at("$.head.n")]).toEqual([PUSH, "refs/heads/main", "b", null]);
  const missing = ["$.nothing", "$.ref.length", "$.commits.length", "$.commits[2]", "$[0]", "$.toString", "$.head[0]"];
  for (const path of missing) expect(at(path), path).toBeUndefined();
});

test("an invalid path is refused with the position", () => {
  const refused = {
    ref: "must begin with $",
    "$.commits[*].id": "at character 10",
    "$..id": "at character 2",
    "$.commits[?(@.id)]": "at character 10",
    "$.commits[-1]": "at character 10",
    "$.commits[0:2]": "at character 10",
    "$['ref']": "at character 2",
    "$.__proto__.x": "__proto__ is not a valid name",
    [`$${".a".repeat(17)}`]: "more than 16 steps",
    [`$.${"a".repeat(200)}`]: "more than 200 characters",
  };
  for (const [path, why] of Object.entries(refused)) {
    expect(readPayloadPath(path), path).toEqual({ ok: false, message: expect.stringContaining(why) });
  }
  for (const target of ["", "a..b", "a[0]", "a b", "__proto__", "a.__proto__", "a.b.c.d.e.f.g.h.i"]) {
    expect(readTarget(target).ok, target).toBe(false);
  }
});

test("a condition holds for one value or for one of a list, and not for a missing or similar value", () => {
  const holds = (when: JsonObject) => checkWhen(when, PUSH).map((one) => one.holds);
  expect(holds({ "$.ref": "refs/heads/main", "$.deleted": false, "$.head.n": null })).toEqual([true, true, true]);
  expect(holds({ "$.ref": ["refs/heads/dev", "refs/heads/main"] })).toEqual([true]);
  expect(holds({ "$.ref": "refs/heads/dev", "$.deleted": 0, "$.absent": null, "$.head": "x" })).toEqual([
    false,
    false,
    false,
    false,
  ]);
});

test("values are put into the run, and the template does not change", () => {
  const run = { model: "policy", metadata: { team: "a" } };
  const taken = fillingOf({ "metadata.sha": "$.head.id", "sampling.extra": "$.head", model: "$.ref" }, PUSH);
  if (!taken.ok) throw new Error(taken.message);
  expect(filled(run, taken.value)).toEqual({
    ok: true,
    value: {
      model: "refs/heads/main",
      metadata: { team: "a", sha: "0d1a" },
      sampling: { extra: { id: "0d1a", n: null } },
    },
  });
  expect(run).toEqual({ model: "policy", metadata: { team: "a" } });
});

test("a value that is missing, too long, too large or under an invalid name is refused with its field", () => {
  const long = "x".repeat(VALUE_CHARACTERS);
  const deep = JSON.parse(`${"[".repeat(50_000)}${"]".repeat(50_000)}`) as Json;
  const proto = JSON.parse('{"__proto__": {"a": 1}}') as Json;
  for (const value of [long, deep, proto, { a: proto }]) {
    const refused = fillingOf({ "metadata.sha": "$.value" }, { value });
    expect(refused).toMatchObject({ ok: false, param: "map.metadata.sha" });
  }
  expect(fillingOf({ seed: "$.absent" }, PUSH)).toMatchObject({
    ok: false,
    message: expect.stringContaining("$.absent"),
  });
  expect(filled({ model: "m" }, { "model.name": 1 })).toMatchObject({ ok: false, param: "map.model.name" });
});

test("a payload can name an endpoint, and one that contains a key is refused with its field", () => {
  const payload = {
    plain: { base_url: "https://a.example/v1" },
    keyed: { base_url: "https://a.example/v1", api_key: "k" },
  };
  expect(fillingOf({ endpoint: "$.plain" }, payload)).toEqual({ ok: true, value: { endpoint: payload.plain } });
  expect(fillingOf({ environment_args: "$.keyed" }, payload)).toMatchObject({ ok: true });
  for (const target of ["endpoint", "judges.default.endpoint", "judges"]) {
    const refused = fillingOf({ [target]: target === "judges" ? "$" : "$.keyed" }, payload);
    expect(refused).toMatchObject({
      ok: false,
      param: `map.${target}`,
      message: expect.stringContaining("cannot store keys"),
    });
  }
});

test("a number with too many digits is refused where it is used, and nowhere else", () => {
  const payload = parseKeepingNumbers('{"id":9007199254740993,"ref":"main","in":{"list":[1,1e400]}}') as Json;
  expect(checkWhen({ "$.ref": "main", "$.id": 9007199254740992 }, payload).map(({ holds }) => holds)).toEqual([
    true,
    false,
  ]);
  expect(fillingOf({ "metadata.ref": "$.ref" }, payload)).toEqual({ ok: true, value: { "metadata.ref": "main" } });
  expect(fillingOf({ "metadata.id": "$.id" }, payload)).toEqual({
    ok: false,
    message: "map.metadata.id: $.id: the whole number 9007199254740993 has too many digits to be stored exactly",
    param: "map.metadata.id",
  });
  expect(fillingOf({ dataset: "$.in" }, payload)).toMatchObject({
    message: expect.stringContaining("map.dataset: $.in.list[1]: the number 1e400 is too large"),
  });
});
