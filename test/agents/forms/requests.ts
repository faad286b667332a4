/** What tests of all forms read of a request. */
import { expect } from "vitest";
import { type Form, FormError } from "../../../src/agents/forms/form.ts";

/** The error of a request that the form refuses: its message, which begins with the field. */
export function refusalOf(form: Form, body: unknown): string {
  try {
    form.parse(body);
  } catch (thrown) {
    if (!(thrown instanceof FormError)) throw thrown;
    if (thrown.param !== null) expect(thrown.message.startsWith(thrown.param)).toBe(true);
    return thrown.message;
  }
  throw new Error("the request was accepted");
}
