/**
 * Runs commands that talk to a platform: each connects, is ended by Ctrl-C and by --timeout, and closes what it opened.
 * A command that makes one request prints one reply and ends; the platform may still work on the request.
 */
import type { CallOptions, Page, RollcallClient } from "../sdk/client.ts";
import { type Command, type CommandLine, type CommandSpec, command, PLATFORM_FLAGS } from "./command-line.ts";
import type { Connection, ConnectOptions } from "./connect.ts";
import { EXIT, type ExitCode, endBy, failedOn, unreachable } from "./exit.ts";
import { aborted, catchInterrupts, type Ends, firstOf } from "./interrupt.ts";
import { printJson, type Terminal, terminal } from "./terminal/terminal.ts";

export interface ConnectArguments extends Omit<ConnectOptions, "signal" | "log"> {
  readonly timeoutMs: number | null;
}

/**
 * Loads the code that boots and finds platforms only when it is needed, so that --help and usage errors are fast. The
 * import has its own function because the compiler does not rewrite `./connect.ts` in a function with `using`; the
 * package, which has `./connect.js`, would not find it.
 */
export function loadConnect() {
  return import("./connect.ts");
}

/** Connects, and closes the connection when the work is done or has failed. */
export async function withConnection<T>(
  { timeoutMs, ...options }: ConnectArguments,
  log: (line: string) => void,
  work: (connection: Connection, ends: Ends) => Promise<T>,
): Promise<T> {
  using interrupt = catchInterrupts();
  const { connect } = await loadConnect();
  const timeout = timeoutMs === null ? null : AbortSignal.timeout(timeoutMs);
  const ends = { interrupt: interrupt.signal, timeout };
  const connection = await connect({
    ...options,
    signal: firstOf(ends),
    // Ctrl-C also reaches workerd: do not report its restart to a user who is leaving.
    log: (line) => {
      if (!interrupt.signal.aborted) log(line);
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

/** The flags of a command line that choose its platform. */
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
  /** The same key in another project. */
  readonly inProject: (idOrName: string) => RollcallClient;
  /** The platform's address. */
  readonly url: string;
  /** The flags that let a suggested command find the same platform, each after a space. */
  readonly flags: string;
  /** The name of the profile that named the platform; null without one. */
  readonly profile: string | null;
  /** The project in requests; undefined if they have none. */
  readonly project: string | undefined;
  /** Aborted by Ctrl-C and by --timeout. */
  readonly signal: AbortSignal;
  readonly term: Terminal;
}

/** The output of a command at its end. */
export interface Reply {
  /** The object of --json; absent if the command has already printed its result. */
  readonly json?: object;
  /** The same as text. */
  readonly text?: () => string;
  /** The exit code of a successful command; 0 by default. */
  readonly exit?: ExitCode | undefined;
}

/** `goOn` says how to continue after an interruption or --timeout. */
export function onPlatform(
  line: CommandLine<keyof typeof PLATFORM_FLAGS>,
  work: (session: Session) => Promise<Reply>,
  goOn?: () => string,
): Promise<ExitCode> {
  const json = line.on("json");
  const term = terminal(json);
  const asked = { ...platformAsked(line), ephemeral: false, reads: line.reads };
  return withConnection(asked, term.log, async ({ lost, ...connection }, ends) => {
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
  extends Pick<CommandSpec, "takes" | "help" | "more" | "reads"> {
  readonly name: Name;
  /** The argument in words: "a run". */
  readonly what: string;
  readonly ask: (client: RollcallClient, id: string, options: CallOptions) => Promise<Found>;
  readonly text: (found: Found, term: Terminal, id: string) => string;
  readonly exit?: (found: Found) => ExitCode;
}

/** A command that makes one request about the resource that its argument names, and prints the answer. */
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

/** Collects a list in the API's own envelope: at most `limit` items. `has_more` says whether there are more. */
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
