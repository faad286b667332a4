/**
 * One delivery of an event to an address. It follows no redirect and reads no more than a short answer; what the answer
 * means, and whether it is tried again, is decided elsewhere, never here.
 */
import { beginningOf } from "../kernel/clients/bounded-body.ts";
import type { Send } from "../kernel/clients/outgoing.ts";

export interface WebhookCall {
  readonly url: string;
  readonly body: string;
  /** Those that sign the body. */
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** Of the answer. */
  readonly bytes: number;
  readonly send: Send;
}

/** Never throws. */
export async function postWebhook(
  call: WebhookCall,
): Promise<{ status: number; retryAfter: string | null; text: string } | { error: string }> {
  const { url, body, headers, timeoutMs, bytes, send } = call;
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    const reply = await send(new URL(url), {
      method: "POST",
      body,
      headers: { "content-type": "application/json", "user-agent": "rollcall-webhooks", ...headers },
      signal,
    });
    const answered = { status: reply.status, retryAfter: reply.headers.get("retry-after") };
    return { ...answered, text: await textOf(reply, bytes) };
  } catch (thrown) {
    if (signal.aborted) return { error: `no answer within ${timeoutMs / 1000} s` };
    return { error: thrown instanceof Error ? thrown.message : String(thrown) };
  }
}

/** Whoever answered has the event, whatever becomes of what else it says. */
async function textOf(reply: Response, bytes: number): Promise<string> {
  try {
    return await beginningOf(reply, bytes);
  } catch (thrown) {
    return `(the answer was incomplete: ${thrown instanceof Error ? thrown.message : String(thrown)})`;
  }
}
