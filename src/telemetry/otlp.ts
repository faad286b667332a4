/** Sends spans to a collector by OTLP/HTTP, as JSON. This is the only place that retries such a call. */
import { beginningOf } from "../kernel/clients/bounded-body.ts";
import type { Send } from "../kernel/clients/outgoing.ts";

export interface Collector {
  /** Without the path for traces. */
  readonly endpoint: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly send: Send;
  /** Waits between two attempts; tests replace it. */
  readonly pause: (ms: number) => Promise<void>;
}

/** The result: how many spans were not accepted, and why (null if all were). `away`: the collector was unavailable. */
export interface SpansSent {
  readonly rejected: number;
  readonly error: string | null;
  readonly away: boolean;
}

const TRIES = 2;
const PAUSE_MS = 500;
const LONGEST_MS = 5000;
const REPLY_BYTES = 64 * 1024;
const QUOTED_CHARACTERS = 300;
/** Status codes that the protocol says to retry. */
const AGAIN = [429, 502, 503, 504];

const ALL_TAKEN: SpansSent = { rejected: 0, error: null, away: false };

/** Sends one request, in at most two attempts of 5 s each. Never throws. `spans`: in the protocol's shape. */
export async function sendSpans(collector: Collector, spans: readonly object[]): Promise<SpansSent> {
  const count = spans.length;
  const body = JSON.stringify({
    resourceSpans: [
      {
        resource: { attributes: [{ key: "service.name", value: { stringValue: "rollcall" } }] },
        scopeSpans: [{ scope: { name: "rollcall" }, spans }],
      },
    ],
  });
  for (let attempt = 1; ; attempt += 1) {
    const { sent, again } = await tryOnce(collector, body, count);
    if (!again || attempt === TRIES) return sent;
    await collector.pause(PAUSE_MS);
  }
}

async function tryOnce(
  { endpoint, headers, send }: Collector,
  body: string,
  count: number,
): Promise<{ readonly sent: SpansSent; readonly again: boolean }> {
  try {
    const url = new URL(`${endpoint.replace(/\/+$/, "")}/v1/traces`);
    const signal = AbortSignal.timeout(LONGEST_MS);
    const init = { method: "POST", headers: { ...headers, "content-type": "application/json" }, body, signal };
    const reply = await send(url, init);
    const text = await beginningOf(reply, REPLY_BYTES);
    if (reply.ok) return { sent: takenOf(text), again: false };
    const error = `the collector answered ${reply.status}: ${text.slice(0, QUOTED_CHARACTERS)}`;
    const again = AGAIN.includes(reply.status);
    return { sent: { rejected: count, error, away: again }, again };
  } catch (thrown) {
    const error = thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : String(thrown);
    return { sent: { rejected: count, error, away: true }, again: true };
  }
}

/** A collector may accept only some of the spans. A reply in another format counts as acceptance. */
function takenOf(text: string): SpansSent {
  const partial = /"rejectedSpans"\s*:\s*"?(\d+)/.exec(text)?.[1];
  const rejected = Number(partial ?? 0);
  return rejected === 0
    ? ALL_TAKEN
    : { rejected, error: `partly refused: ${text.slice(0, QUOTED_CHARACTERS)}`, away: false };
}

/** `key=value` pairs separated by commas, percent-encoded, as `OTEL_EXPORTER_OTLP_HEADERS` has them. */
export function headersOf(text: string): Record<string, string> {
  const pairs = text.split(",").flatMap((pair) => {
    const [name = "", ...rest] = pair.split("=");
    return name.trim() === "" ? [] : [[name.trim().toLowerCase(), decoded(rest.join("=").trim())] as const];
  });
  return Object.fromEntries(pairs);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // The value was not encoded and contains a per cent sign.
    return text;
  }
}
