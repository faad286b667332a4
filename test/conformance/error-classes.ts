/** The classes that vectors name, of the product or of the language. */
import {
  AuthenticationError,
  BrowserSandboxError,
  EmptyModelResponseError,
  EnvError,
  InfraError,
  InvalidModelResponseError,
  KeyError,
  ModelError,
  OverlongPromptError,
  RolloutError,
  SandboxError,
  ScoringError,
  ToolCallError,
  ToolError,
  ToolParseError,
  TunnelError,
  ValueError,
} from "../../src/contract/errors.ts";

type ErrorClass = new (message: string, options?: { cause?: unknown }) => Error;

/** Python's own errors: causes, and errors of test functions. */
const BUILT_IN = ["RuntimeError", "IndexError", "AssertionError", "TimeoutError"];

function named(name: string): ErrorClass {
  return class extends Error {
    override readonly name = name;
  };
}

const CLASSES: Readonly<Record<string, ErrorClass>> = {
  AuthenticationError,
  BrowserSandboxError,
  EmptyModelResponseError,
  EnvError,
  InfraError,
  InvalidModelResponseError,
  KeyError,
  ModelError,
  OverlongPromptError,
  SandboxError,
  ScoringError,
  ToolCallError,
  ToolError,
  ToolParseError,
  TunnelError,
  ValueError,
  TypeError,
  RangeError,
  SyntaxError,
  JSONDecodeError: SyntaxError,
  Exception: Error,
  // The reference's own base class.
  Error: RolloutError,
  ...Object.fromEntries(BUILT_IN.map((name) => [name, named(name)])),
};

/** Failures of these classes may be any error, because the names are Python's. */
const ANY_ERROR: ReadonlySet<string> = new Set([
  "ValueError",
  "AssertionError",
  "IndexError",
  "KeyError",
  "TypeError",
  "Exception",
  "Error",
]);

/** Throws for an unknown name, so that a vector with a new class fails loudly. */
export function errorClass(name: string): ErrorClass {
  const known = CLASSES[name];
  if (known === undefined) throw new Error(`no error class is known as ${name}`);
  return known;
}

/** The name that vectors use for a class of ours. */
export function recordedName(name: string): string {
  if (name === "SyntaxError") return "JSONDecodeError";
  return name === "RolloutError" ? "Error" : name;
}

/** Why the thrown error is not the expected failure; null if it is. */
export function failureDiffers(
  want: { readonly error: string; readonly mentions: readonly string[] },
  thrown: unknown,
): string | null {
  if (!(thrown instanceof Error)) return `threw ${String(thrown)}, which is no error`;
  if (!ANY_ERROR.has(want.error) && recordedName(thrown.name) !== want.error) {
    return `threw ${thrown.name}, wanted ${want.error}`;
  }
  const missing = want.mentions.find((part) => !thrown.message.includes(part));
  return missing === undefined ? null : `the message does not mention ${JSON.stringify(missing)}: ${thrown.message}`;
}
