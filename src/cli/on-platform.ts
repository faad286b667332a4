/**
 * Commands that talk to a platform: each connects, is ended by Ctrl-C and by --timeout, and closes what it opened. A
 * command that asks something and is done prints one reply; what the platform was asked to do it may still do.
 */
import type { CallOptions, Page, RollcallClient } from "../sdk/client.ts";
import { type Command, type CommandLine, type CommandSpec, command, PLATFORM_FLAGS } from "./command-line.ts";
import type { Connection, ConnectOptions } from "./connect.ts";
import { EXIT, type ExitCode, endBy, failedOn, unreachable } from "./exit.ts";
import { aborted, catchInterrupts, type Ends, firstOf } from "./interrupt.ts";
import { printJson, type Terminal, terminal } from "./terminal/terminal.ts";

export interface ConnectArguments extends Omit<ConnectOptions, "signal" | "say"> {
  readonly timeoutMs: number | null;
}

/**
 * What boots and finds platforms, loaded when it is needed: neither --help nor a command that is wrongly called waits for
 * it. The import has a function of its own: in a function with `using` the compiler leaves the name `./connect.ts` as it
 * is, and the package, which has `./connect.js`, would not find it.
 */
export function loadConnect() {
  return import("./connect.ts");
}

/** Connects, and closes the connection when the work is done or has failed. */
export async function withConnection<T>(
  { timeoutMs, ...options }: ConnectArguments,
  say: (line: string) => void,
  work: (connection: Connection, ends: Ends) => Promise<T>,
): Promise<T> {
  using interrupt = catchInterrupts();
  const { connect } = await loadConnect();
  const timeout = timeoutMs === null ? null : AbortSignal.timeout(timeoutMs);
  const ends = { interrupt: interrupt.signal, timeout };
  const connection = await connect({
    ...options,
    signal: firstOf(ends),
    // Ctrl-C reaches workerd, too: that it is started again need not be told to somebody who is leaving.
    say: (line) => {
      if (!interrupt.signal.aborted) say(line);
    },
  });
  try {
    return await work(connection, ends);
  } catch (thrown) {
    throw failedOn(connection, thrown);
  } finally {
    await connection.close();
  }
}

/** What a command line says of the platform it is for. */
export function platformAsked(line: CommandLine<Exclude<keyof typeof PLATFORM_FLAGS, "json">>) {
  return {
    platform: line.text("platform"),
    profile: line.text("profile"),
    project: line.text("project"),
    timeoutMs: line.timeoutMs("timeout"),
  };
}

export interface Session {
  readonly client: RollcallClient;
  /** The same key at work in another project. */
  readonly inProject: (idOrName: string) => RollcallClient;
  /** The platform's address. */
  readonly url: string;
  /** The flags that a command shown to the user needs to find the same platform, each after a space. */
  readonly flags: string;
  /** Name of the profile by which the platform was found; null without one. */
  readonly profile: string | null;
  /** What requests name as their project; undefined where none does. */
  readonly project: string | undefined;
  /** Aborted by Ctrl-C and when the time is up. */
  readonly signal: AbortSignal;
  readonly term: Terminal;
}

/** What a command says at its end. */
export interface Reply {
  /** The object of --json; absent where the command has printed what it found. */
  readonly json?: object;
  /** The same for a person. */
  readonly text?: () => string;
  /** Of a command that did what it was asked: 0 unless it says otherwise. */
  readonly exit?: ExitCode | undefined;
}

/** `goOn` says how to go on when it is interrupted, or its time is up. */
export function onPlatform(
  line: CommandLine<keyof typeof PLATFORM_FLAGS>,
  work: (session: Session) => Promise<Reply>,
  goOn?: () => string,
): Promise<ExitCode> {
  const json = line.on("json");
  const term = terminal(json);
  const asked = { ...platformAsked(line), ephemeral: false, reads: line.reads };
  return withConnection(asked, term.say, async ({ lost, ...connection }, ends) => {
    const signal = firstOf(ends);
    const stopped = aborted(signal).then((): never => {
      throw endBy(signal, goOn?.());
    });
    const gone = lost.then((reason): never => {
      throw unreachable("the platform has stopped", reason);
    });
    const reply = await Promise.race([work({ ...connection, signal, term }), stopped, gone]);
    if (json && reply.json !== undefined) printJson(reply.json);
    else if (!json && reply.text !== undefined) term.print(reply.text());
    return reply.exit ?? EXIT.good;
  });
}

interface Question<Name extends string, Found extends object>
  extends Pick<CommandSpec, "takes" | "says" | "more" | "reads"> {
  readonly name: Name;
  /** The one argument, in words: "a run". */
  readonly what: string;
  readonly ask: (client: RollcallClient, id: string, options: CallOptions) => Promise<Found>;
  readonly text: (found: Found, term: Terminal, id: string) => string;
  readonly exit?: (found: Found) => ExitCode;
}

/** A command that asks the platform one question about the thing its argument names, and prints the answer. */
export function question<const Name extends string, Found extends object>(
  asked: Question<Name, Found>,
): Command & { readonly name: Name } {
  const { what, ask, text, exit, ...spec } = asked;
  return command({
    ...spec,
    flags: PLATFORM_FLAGS,
    run(line) {
      const id = line.one(what);
      return onPlatform(line, async ({ client, signal, term }) => {
        const found = await ask(client, id, { signal });
        return { json: found, text: () => text(found, term, id), exit: exit?.(found) };
      });
    },
  });
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
