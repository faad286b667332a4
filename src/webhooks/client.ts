/**
 * Sends one delivery of an event to an address. Follows no redirect and reads only the start of the answer. The caller
 * decides what the answer means and whether to retry.
 */
import { beginningOf } from "../kernel/clients/bounded-body.ts";
import type { Send } from "../kernel/clients/outgoing.ts";

export interface WebhookCall {
  readonly url: string;
  readonly body: string;
  /** The headers that sign the body. */
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** The most bytes of the answer that are read. */
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

/** The server has the event once it has answered, even if its body cannot be read. */
async function textOf(reply: Response, bytes: number): Promise<string> {
  try {
    return await beginningOf(reply, bytes);
  } catch (thrown) {
    return `(the answer was incomplete: ${thrown instanceof Error ? thrown.message : String(thrown)})`;
  }
}
