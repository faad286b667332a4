/**
 * Sends a batch offer to a trainer's address. It follows no redirect and reads only a short answer. The rules for the
 * answer are in kernel/trainer/offers.ts, and its object repeats an offer that did not reach the trainer.
 */

import { OfferAcked } from "../../contract/trainer-wire.ts";
import { type ReadMetrics, readMetrics } from "../../core/training/read-metrics.ts";
import { beginningOf } from "./bounded-body.ts";
import type { Send } from "./outgoing.ts";

export type OfferReply =
  | { readonly kind: "accepted" }
  /** The trainer trained the batch before it answered. */
  | ({ readonly kind: "acked"; readonly not_finite?: readonly string[] } & Omit<OfferAcked, "acked">)
  | { readonly kind: "gone" }
  | { readonly kind: "busy"; readonly retry_after_ms: number | null }
  | { readonly kind: "refused"; readonly message: string }
  | { readonly kind: "absent"; readonly message: string };

export interface OfferCall {
  readonly url: string;
  readonly body: string;
  /** The headers that sign the body. */
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly send: Send;
}

const BUSY = [425, 429, 503];
const LONGEST_ANSWER = 64 * 1024;
const LONGEST_QUOTE = 200;

/** Never throws. */
export async function offerBatch(call: OfferCall): Promise<OfferReply> {
  const { url, body, headers, timeoutMs, send } = call;
  try {
    const reply = await send(new URL(url), {
      method: "POST",
      body,
      headers: { "content-type": "application/json", ...headers },
      signal: AbortSignal.timeout(timeoutMs),
    });
    return meaningOf(reply.status, reply.headers.get("retry-after"), await beginningOf(reply, LONGEST_ANSWER));
  } catch (thrown) {
    return { kind: "absent", message: thrown instanceof Error ? thrown.message : String(thrown) };
  }
}

function meaningOf(status: number, retryAfter: string | null, text: string): OfferReply {
  if (status === 202) return { kind: "accepted" };
  if (status === 200) return ackOf(text);
  if (status === 410) return { kind: "gone" };
  if (BUSY.includes(status)) {
    const seconds = /^\d+$/.test(retryAfter ?? "") ? Number(retryAfter) : null;
    return { kind: "busy", retry_after_ms: seconds === null ? null : seconds * 1000 };
  }
  const message = `the trainer answered ${status}: ${text.slice(0, LONGEST_QUOTE)}`;
  // 409: the trainer is at another step or has a later epoch, and will register. The batch itself was not refused.
  const refuses = status >= 400 && status < 500 && status !== 409;
  return { kind: refuses ? "refused" : "absent", message };
}

function ackOf(text: string): OfferReply {
  const read = jsonOf(text);
  const parsed = OfferAcked.safeParse(read?.body);
  if (read === null || !parsed.success) return { kind: "absent", message: "the trainer answered 200 without an ack" };
  const { acked: _, ...ack } = parsed.data;
  return { kind: "acked", ...ack, not_finite: read.not_finite };
}

function jsonOf(text: string): ReadMetrics | null {
  try {
    return readMetrics(text);
  } catch (thrown) {
    if (thrown instanceof SyntaxError) return null;
    throw thrown;
  }
}
