/**
 * A command that asks a platform something and is done: connects, bounds the time, prints one answer. Ctrl-C and
 * --timeout end it at once; what the platform was asked to do it may still do.
 */
import type { Page, RollcallClient } from "../sdk/client.ts";
import type { CommandLine } from "./command-line.ts";
import { connect } from "./connect.ts";
import { type ExitCode, endBy, unreachable } from "./exit.ts";
import { aborted, catchInterrupts, firstOf } from "./interrupt.ts";
import { printJson, type Terminal, terminal } from "./terminal/terminal.ts";

export interface Session {
  readonly client: RollcallClient;
  /** Aborted by Ctrl-C and when the time is up. */
  readonly signal: AbortSignal;
  readonly term: Terminal;
  /** The answer: the object with --json, the text without. */
  answer(value: unknown, text: () => string): void;
}

/** `goOn` says how to go on when it is interrupted. */
export async function onPlatform(
  line: CommandLine<"json" | "platform" | "timeout">,
  work: (session: Session) => Promise<ExitCode>,
  goOn?: string,
): Promise<ExitCode> {
  const json = line.on("json");
  const timeoutMs = line.timeoutMs("timeout");
  const term = terminal(json);
  using interrupt = catchInterrupts();
  const timeout = timeoutMs === null ? null : AbortSignal.timeout(timeoutMs);
  const signal = firstOf(interrupt.signal, timeout);
  const connection = await connect({
    platform: line.text("platform"),
    ephemeral: false,
    reads: line.reads,
    signal,
    say: term.say,
  });
  const stopped = aborted(signal).then((): never => {
    throw endBy(signal, goOn);
  });
  const lost = connection.lost.then((reason): never => {
    throw unreachable("the platform is gone", reason);
  });
  const answer = (value: unknown, text: () => string) => {
    if (json) printJson(value);
    else term.print(text());
  };
  try {
    return await Promise.race([work({ client: connection.client, signal, term, answer }), stopped, lost]);
  } finally {
    await connection.close();
  }
}

/** A list in the API's own envelope: at most `limit` of what comes. `has_more` says whether there was more. */
export async function gather<T extends { readonly id: string }>(
  items: AsyncIterable<T>,
  limit = Number.POSITIVE_INFINITY,
): Promise<Page<T>> {
  const data: T[] = [];
  let more = false;
  for await (const item of items) {
    more = data.length >= limit;
    if (more) break;
    data.push(item);
  }
  return {
    object: "list",
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: more,
  };
}
