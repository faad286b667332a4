import { dataset, SingleTurnEnv } from "rollcall";
import { expect, test } from "vitest";
import * as z from "zod";
import type { EnvironmentCode } from "../../../src/core/protocol/environment-code.ts";
import { codeOf } from "../../../src/core/protocol/in-process.ts";
import { BuiltEnvironments } from "../../../src/kernel/environment/built-environments.ts";

const rows = dataset(z.object({ question: z.string() }), "uploaded");

function shelf() {
  const retired: EnvironmentCode[] = [];
  const built = new BuiltEnvironments({
    kept: 2,
    leaseMs: 100,
    buildMs: 10_000,
    retire: (environment) => retired.push(environment),
  });
  const made: string[] = [];
  const get = (name: string, now: number, holds = true) =>
    built.get(
      name,
      async () => {
        made.push(name);
        const rubric = holds ? { teardown: { close: () => undefined } } : {};
        return codeOf(new SingleTurnEnv({ dataset: rows, rubric }));
      },
      now,
    );
  return { retired, built, made, get };
}

test("A3: an instance is retired once newer ones need its place and its lease is over", async () => {
  const { get, made, retired } = shelf();
  const first = await get("first", 0);
  expect(await get("first", 10)).toBe(first);
  await get("second", 20);
  await get("third", 90);
  expect(retired).toEqual([]);
  await get("fourth", 110);
  expect(retired).toEqual([first]);
  expect(await get("first", 111)).not.toBe(first);
  expect(made).toEqual(["first", "second", "third", "fourth", "first"]);
});

test("an instance without teardown is dropped at once, the least recently used first", async () => {
  const { get, made, retired } = shelf();
  for (const name of ["first", "second", "first", "third", "first", "second"]) {
    await get(name, 0, false);
  }
  expect(made).toEqual(["first", "second", "third", "second"]);
  expect(retired).toEqual([]);
});

test("a build that failed is tried again", async () => {
  const { built, get } = shelf();
  const failing = built.get("one", () => Promise.reject(new Error("not today")), 0);
  await expect(failing).rejects.toThrow("not today");
  expect((await get("one", 1)).description.players).toHaveLength(1);
});

test("a build that never settles times out for its caller, a waiting caller builds itself, and so does the next", async () => {
  const built = new BuiltEnvironments({
    kept: 2,
    leaseMs: 100,
    buildMs: 5,
    retire: () => undefined,
  });
  let builds = 0;
  const never = () => {
    builds += 1;
    return new Promise<EnvironmentCode>(() => undefined);
  };
  const both = [built.get("slow", never, 0), built.get("slow", never, 0)];
  for (const one of await Promise.allSettled(both)) {
    expect(one).toMatchObject({ reason: { message: "its build did not finish within 0.005 s" } });
  }
  expect(builds).toBe(2);
  const made = await built.get("slow", async () => codeOf(new SingleTurnEnv({ dataset: rows, rubric: {} })), 0);
  expect(await built.get("slow", never, 0)).toBe(made);
  expect(builds).toBe(2);
});

test("a caller that builds alone does not wait for another's build, and what it built is kept", async () => {
  const { built, get } = shelf();
  const { promise: hanging, reject } = Promise.withResolvers<EnvironmentCode>();
  const never = () => hanging;
  const first = built.get("one", never, 0, true);
  const made = await built.get("one", async () => codeOf(new SingleTurnEnv({ dataset: rows, rubric: {} })), 1, true);
  expect(await built.get("one", never, 2, true)).toBe(made);
  expect(await get("one", 3)).toBe(made);
  reject(new Error("its invocation ended"));
  await expect(first).rejects.toThrow("its invocation ended");
});
