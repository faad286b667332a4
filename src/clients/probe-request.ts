/**
 * One request of a probe. It follows no redirect, so that neither the key nor the request ends up at another address than
 * the one that was checked, and reads no more than it was prepared for.
 */
import { LIMITS } from "../contract/limits.ts";
import { LongBodyError, wholeText } from "./bounded-body.ts";
import { withoutKey } from "./without-key.ts";

export interface Answer {
  readonly status: number;
  /** Parsed; null when it is no JSON. */
  readonly body: unknown;
  /** What the server says went wrong, short and without the key; empty when it says nothing. */
  readonly said: string;
}

/** The end of a probe, in words for whoever reads the endpoint. */
export class ProbeFailure extends Error {
  override readonly name = "ProbeFailure";
}

interface Target {
  readonly base_url: string;
  readonly api_key: string | null;
}

const LONGEST_SAID = 200;

/** A GET without a body, a POST with one. Throws ProbeFailure when no answer can be had. */
export async function ask(target: Target, path: string, body: object | null, signal: AbortSignal): Promise<Answer> {
  const url = `${target.base_url.replace(/\/+$/, "")}${path}`;
  try {
    const response = await fetch(url, {
      method: body === null ? "GET" : "POST",
      headers: {
        ...(body === null ? {} : { "content-type": "application/json" }),
        ...(target.api_key === null ? {} : { authorization: `Bearer ${target.api_key}` }),
      },
      ...(body === null ? {} : { body: JSON.stringify(body) }),
      redirect: "manual",
      signal,
    });
    const parsed = parse(await wholeText(response, LIMITS.completionBytes));
    return { status: response.status, body: parsed, said: said(parsed, target) };
  } catch (thrown) {
    if (thrown instanceof LongBodyError) throw new ProbeFailure("answers with more than 4 MiB");
    const reason = short(thrown instanceof Error ? thrown.message : String(thrown), target);
    // The runtime says no more than this of a name that no resolver knows.
    const told = reason.startsWith("internal error") ? "no such server, or no way to it" : reason;
    throw new ProbeFailure(`not reachable: ${told}`);
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (thrown) {
    if (thrown instanceof SyntaxError) return null;
    throw thrown;
  }
}

/** OpenAI's `error.message`, or vLLM's and FastAPI's `message` and `detail`. */
function said(body: unknown, target: Target): string {
  const error = member(body, "error");
  const candidates = [member(error, "message"), error, member(body, "message"), member(body, "detail")];
  const message = candidates.find((candidate) => typeof candidate === "string");
  return typeof message === "string" ? short(message, target) : "";
}

function member(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
}

/** The key goes before the cut: a cut through it would leave a part. */
function short(text: string, { api_key }: Target): string {
  return withoutKey(text, api_key).slice(0, LONGEST_SAID);
}
