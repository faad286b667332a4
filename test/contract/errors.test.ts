import { expect, test } from "vitest";
import {
  asEnvError,
  EnvError,
  endsTheWhole,
  firstErrors,
  StageTimeoutError,
  serializeError,
} from "../../src/contract/errors.ts";
import { LIMITS } from "../../src/contract/limits.ts";
import { CUT, shortText } from "../../src/contract/shown-text.ts";
import { redact } from "../../src/core/redact.ts";

const TEXTS = ["message", "error_chain_repr", "error_chain_str"] as const;

test("each text of an error is cut to its stored length, with a mark; a shorter one is unchanged", () => {
  const long = new EnvError("a".repeat(5_000_000), { cause: new TypeError("why") });
  const serialized = serializeError(long);
  for (const text of TEXTS) expect(serialized[text].length).toBeLessThanOrEqual(LIMITS.errorCharacters);
  expect(serialized.message.endsWith(CUT)).toBe(true);
  expect(serialized.error_chain_repr.endsWith(CUT)).toBe(true);
  expect(serialized.error_chain_str).toBe("EnvError -> TypeError");
  const fits = "b".repeat(LIMITS.errorCharacters);
  expect(serializeError(new Error(fits)).message).toBe(fits);
});

test("a chain of long causes and an error with a long name are cut, too", () => {
  const named = (cause: unknown) => Object.assign(new Error("m", { cause }), { name: "N".repeat(5000) });
  const serialized = serializeError(named(named(named(null))));
  expect(serialized.error.length).toBe(LIMITS.nameCharacters);
  for (const text of TEXTS) expect(serialized[text].length).toBeLessThanOrEqual(LIMITS.errorCharacters);
});

test("no cut goes between the halves of a surrogate pair", () => {
  for (const before of ["", "x"]) {
    const cut = shortText(before + "😀".repeat(5000), 4096);
    expect(cut.isWellFormed()).toBe(true);
    expect(cut.endsWith(`😀${CUT}`)).toBe(true);
    expect(cut.length).toBeGreaterThan(4090);
  }
});

test("every thrown value has a text, and serialising it never throws", () => {
  const odd = [Object.create(null), Symbol("s"), undefined, { toString: null }, new Proxy({}, {})];
  for (const thrown of odd) expect(serializeError(thrown).message).not.toBe("");
  const named = Object.defineProperty(new Error("m"), "message", {
    get: () => {
      throw new Error("no message");
    },
  });
  expect(serializeError(named).message).toBe("no message (object)");
});

test("an unreadable error is serialised, whatever access to it throws", () => {
  const get = () => {
    throw new Error("a getter");
  };
  const parts = ["name", "message", "cause", "retryable", "whole"] as const;
  for (const part of parts) {
    const thrown = Object.defineProperty(new StageTimeoutError("m"), part, { get });
    expect(serializeError(thrown).error_chain_str, part).not.toBe("");
    expect(serializeError(asEnvError(thrown, "hook")).message, part).not.toBe("");
    expect(endsTheWhole(thrown)).toBe(false);
  }
  const proxy = new Proxy(new Error("m"), { getPrototypeOf: get, get });
  expect(serializeError(asEnvError(proxy, "hook"))).toMatchObject({
    error: "EnvError",
    message: "hook: no message (object)",
    retryable: false,
  });
});

test("of a list the first errors are kept, and one more has the number of the others", () => {
  const errors = Array.from({ length: 100 }, (_, at) => `${at} ${"e".repeat(1000)}`);
  const kept = firstErrors(errors, (rest) => `${rest} more`);
  expect(kept.slice(0, -1)).toEqual(errors.slice(0, kept.length - 1));
  expect(kept.at(-1)).toBe(`${100 - kept.length + 1} more`);
  expect(JSON.stringify(kept).length).toBeLessThan(LIMITS.errorListCharacters + 100);
  expect(firstErrors(errors.slice(0, 3), () => "more")).toEqual(errors.slice(0, 3));
});

test("a secret that was cut is removed with its rest", () => {
  const secret = "sk-1234567890";
  const room = LIMITS.errorCharacters - CUT.length;
  for (const kept of [4, 6, 12]) {
    const message = `${"x".repeat(room - kept)}${secret}${"y".repeat(100)}`;
    const { message: stored } = redact(serializeError(new Error(message)), [secret]);
    expect(stored).not.toContain(secret.slice(0, 4));
    expect(stored.endsWith(`x[secret]${CUT}`)).toBe(true);
  }
});
