/**
 * An external scorer at an address: it gets a POST with the rollout and answers `{"score": number}`.
 *
 * Invariants. Every request is signed, and a repeated one has the same id. Only a 2xx reply with a finite score is a
 * score: a timeout, a redirect, an invalid or too long reply gives none. Nothing here retries.
 */
import { EnvError, InfraError, parseDigits, type RewardArgs } from "rollcall";
import * as z from "zod";
import type { GraderPart } from "./graders.ts";
import type { Names } from "./template.ts";

type HttpGrader = Extract<GraderPart, { type: "http" }>;

const LONGEST_REPLY = 65_536;
/** Statuses after which the same request may succeed later. */
const PASSING = [408, 425, 429];

const Reply = z.looseObject({
  score: z.number().nullable(),
  reason: z.string().optional(),
});

export async function httpScore(
  { name, url, secret, timeout_s }: HttpGrader,
  { rollout_id, prompt, completion, answer, can }: RewardArgs<unknown, unknown>,
  { item, sample }: Names,
): Promise<number> {
  const asked = { rollout_id, grader: name, item, sample, prompt, completion, answer };
  const reply = await can
    .fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(asked),
      timeoutMs: timeout_s * 1000,
      sign: { secret, id: requestId(rollout_id, name) },
    })
    .catch(unreachable);
  return scoreIn(await reply.text(), reply.status);
}

/** One id per rollout and grader: a receiver may repeat its answer to a known id. No "." is allowed in it. */
function requestId(rolloutId: string, name: string): string {
  return `${rolloutId}_${encodeURIComponent(name).replaceAll(".", "%2E")}`;
}

function unreachable(thrown: unknown): never {
  if (thrown instanceof EnvError || thrown instanceof InfraError) throw thrown;
  const why = thrown instanceof Error ? thrown.message : String(thrown);
  throw new InfraError(`the scorer cannot be reached: ${why}`, { cause: thrown });
}

function scoreIn(text: string, status: number): number {
  if (status >= 500 || PASSING.includes(status)) throw new InfraError(`the scorer answered ${status}`);
  if (status < 200 || status > 299) {
    throw new EnvError(`the scorer answered ${status}`);
  }
  if (text.length > LONGEST_REPLY) {
    throw new EnvError(`the scorer answered with more than ${LONGEST_REPLY} characters`);
  }
  const { data } = Reply.safeParse(parsed(text));
  if (data === undefined) {
    throw new EnvError(`the scorer did not answer {"score": number}: ${text.slice(0, 100)}`);
  }
  if (data.score === null) throw new EnvError(`the scorer gave no score: ${data.reason ?? "no reason"}`);
  return data.score;
}

function parsed(text: string): unknown {
  try {
    return parseDigits(text);
  } catch {
    return undefined;
  }
}
