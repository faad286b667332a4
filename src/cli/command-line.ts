/**
 * Defines a command: what it takes and what it does. Its help text, the options of `parseArgs`, the completion scripts
 * and docs/reference/commands.md are all made from this one value.
 */

import { parseArgs } from "node:util";
import { COMMAND } from "../local/package-root.ts";
import { type ExitCode, usageError } from "./exit.ts";

/** A guess is dropped if more than this share of the word would have to change. */
const FURTHEST = 0.4;

export interface Flag {
  readonly short?: string;
  /** The name of the value in the help; a flag without one is a switch. */
  readonly value?: string;
  /** The allowed values, if there are few. */
  readonly choices?: readonly string[];
  readonly repeatable?: true;
  readonly help: string;
}
export type Flags = Readonly<Record<string, Flag>>;

/** What completion may offer for an argument. */
type Argument = "environment" | "file" | "shell";

export interface CommandSpec {
  /** The full name: "run list". */
  readonly name: string;
  /** The arguments after the name: "<run>…"; absent if there are none. */
  readonly takes?: string;
  /** The command line of another program may follow `--`; this is how the help shows it. */
  readonly program?: string;
  readonly argument?: Argument;
  /** One line for the list of commands. */
  readonly help: string;
  /** More text for the help. */
  readonly more?: string;
  /** The command changes nothing. A platform that is booted for it does not play rollouts. */
  readonly reads?: true;
  readonly flags: Flags;
}

export interface Command extends CommandSpec {
  /** `argv`: the words after the name. Throws a CommandError. */
  run(argv: readonly string[]): Promise<ExitCode>;
}

/** A command with these flags; `run` can read only these flags. */
export function command<const Name extends string, const Own extends Flags>(
  spec: Omit<CommandSpec, "name" | "flags"> & {
    readonly name: Name;
    readonly flags: Own;
    run(line: CommandLine<keyof Own & string>): ExitCode | Promise<ExitCode>;
  },
): Command & { readonly name: Name } {
  return { ...spec, run: async (argv) => await spec.run(readCommandLine(spec, argv)) };
}

/** The flags of every command that talks to a platform. */
export const PLATFORM_FLAGS = {
  json: { help: "exactly one JSON object on stdout" },
  platform: { value: "URL", help: "URL of the platform; default ROLLCALL_URL, else the local platform" },
  profile: {
    value: "NAME",
    help: "a profile saved by rollcall login, or local for the platform of the state directory",
  },
  project: { value: "NAME", help: "project to use, if the key is for a whole organisation" },
  timeout: { value: "S", help: "give up after this many seconds, exit 1" },
} as const satisfies Flags;

/** Arguments of an environment. */
export const ARGS_FLAG = {
  short: "a",
  value: "ARGS",
  repeatable: true,
  help: "arguments of the environment: JSON, a JSON file, or k=v",
} as const satisfies Flag;

/** Quotes a value so that a shell reads it as one word and the command does not read it as a flag. */
function quoteForShell(value: string): string {
  return value.startsWith("-") ? `'${value.replaceAll("'", "'\\''")}'` : quoteWord(value);
}

/** Quotes a value so that a shell reads it as one word. */
function quoteWord(value: string): string {
  return /^[\w@%+=:,./-]+$/.test(value) ? value : `'${value.replaceAll("'", "'\\''")}'`;
}

/** The arguments of a command. Every reader throws a usage error that names the flag. */
export class CommandLine<Names extends string> {
  readonly positionals: readonly string[];
  /** The words after `--`, of a command that takes a program there; null without `--`. */
  readonly program: readonly string[] | null;
  /** The command changes nothing. */
  readonly reads: boolean;
  readonly #values: Readonly<Record<string, unknown>>;

  constructor(
    values: Readonly<Record<string, unknown>>,
    positionals: readonly string[],
    { program = null, reads = false }: { readonly program?: readonly string[] | null; readonly reads?: boolean } = {},
  ) {
    this.#values = values;
    this.positionals = positionals;
    this.program = program;
    this.reads = reads;
  }

  on(name: Names): boolean {
    return this.#values[name] === true;
  }

  text(name: Names): string | undefined {
    const value = this.#values[name];
    return typeof value === "string" ? value : undefined;
  }

  /** All values of a repeatable flag. */
  all(name: Names): readonly string[] {
    const value = this.#values[name];
    return Array.isArray(value) ? value : [];
  }

  number(name: Names): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const number = Number(text);
    if (text.trim() === "" || !Number.isFinite(number)) {
      throw usageError(`--${name}: ${text} is not a number`, name);
    }
    return number;
  }

  /** A whole number, at least `min`. */
  count(name: Names, min: number): number | undefined {
    const number = this.number(name);
    if (number !== undefined && (!Number.isInteger(number) || number < min)) {
      throw usageError(`--${name}: must be a whole number of at least ${min}`, name);
    }
    return number;
  }

  /** `k=v` pairs of a repeatable flag. */
  pairs(name: Names): Record<string, string> {
    const pairs = this.all(name).map((text): [string, string] => {
      const [, key, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
      if (key === undefined || value === undefined) {
        throw usageError(`--${name}: ${text} is not k=v`, name);
      }
      return [key, value];
    });
    return Object.fromEntries(pairs);
  }

  /**
   * These flags as they were given, for a command that the user can type again: each after a space, quoted if
   * necessary.
   */
  asGiven(names: readonly Names[]): string {
    const flags = names.flatMap((name) => {
      const values = [...this.all(name), ...[this.text(name) ?? []].flat()];
      if (this.on(name)) return [` --${name}`];
      return values.map((value) => ` --${name} ${quoteForShell(value)}`);
    });
    return flags.join("");
  }

  /** The program as it was given, after ` -- `, quoted if necessary; empty without one. */
  programAsGiven(): string {
    return this.program === null ? "" : ` -- ${this.program.map(quoteWord).join(" ")}`;
  }

  /** The milliseconds of `--timeout S`; null without it. */
  timeoutMs(name: Names): number | null {
    const seconds = this.number(name);
    if (seconds === undefined) return null;
    if (seconds <= 0) throw usageError(`--${name}: must be more than 0 seconds`, name);
    return seconds * 1000;
  }

  /** The argument of a command that takes exactly one; `what` names it in the error. */
  one(what: string): string {
    const [only, ...more] = this.positionals;
    if (only === undefined) throw usageError(`${what} is required`);
    if (more.length > 0) throw usageError(`expected only ${what}, not ${this.positionals.join(", ")}`);
    return only;
  }

  none(): void {
    const [first] = this.positionals;
    if (first !== undefined) throw usageError(`${first}: this command takes no arguments, only flags`);
  }
}

export function readCommandLine<Spec extends CommandSpec>(
  spec: Spec,
  argv: readonly string[],
): CommandLine<keyof Spec["flags"] & string> {
  const flags: Flags = { ...spec.flags, ...HELP_FLAG };
  const options = Object.fromEntries(Object.entries(flags).map(([name, flag]) => [name, parseOption(flag)]));
  const [own, program] = spec.program === undefined ? [argv, null] : splitAtProgram(argv);
  const args = joinNegativeNumbers(own, flags);
  checkNames(spec.name, flags, args);
  const { values, positionals } = parseArgs({ args, options, allowPositionals: true });
  checkChoices(flags, values);
  return new CommandLine(values, positionals, { program, reads: spec.reads === true });
}

/** The words before the first `--`, and those after it; null without one. */
export function splitAtProgram(words: readonly string[]): [readonly string[], readonly string[] | null] {
  const at = words.indexOf("--");
  return at < 0 ? [words, null] : [words.slice(0, at), words.slice(at + 1)];
}

export const HELP_FLAG = { help: { short: "h", help: "print this help" } } as const;

function parseOption(flag: Flag) {
  return {
    type: flag.value === undefined ? ("boolean" as const) : ("string" as const),
    multiple: flag.repeatable === true,
    ...(flag.short !== undefined && { short: flag.short }),
  };
}

/** Other eval tools take `-n -1`; parseArgs needs `--num-examples=-1`. */
function joinNegativeNumbers(argv: readonly string[], flags: Flags): string[] {
  const joined: string[] = [];
  for (const word of argv) {
    const flag = /^-\d/.test(word) ? valueFlagOf(joined.at(-1), flags) : undefined;
    if (flag === undefined) joined.push(word);
    else joined.splice(-1, 1, `--${flag}=${word}`);
  }
  return joined;
}

function valueFlagOf(word: string | undefined, flags: Flags): string | undefined {
  const found = Object.entries(flags).find(([name, { short, value }]) => {
    return value !== undefined && (word === `--${name}` || (short && word === `-${short}`));
  });
  return found?.[0];
}

/** Checked here because the error of `parseArgs` for an unknown flag does not help. */
function checkNames(command: string, flags: Flags, args: readonly string[]): void {
  const options = Object.fromEntries(Object.entries(flags).map(([name, flag]) => [name, parseOption(flag)]));
  const { tokens } = parseArgs({ args: [...args], options, strict: false, tokens: true });
  for (const token of tokens) {
    if (token.kind !== "option" || Object.hasOwn(flags, token.name)) continue;
    const guess = token.rawName.startsWith("--") ? nearest(token.name, Object.keys(flags)) : null;
    const hint = guess === null ? `${COMMAND} ${command} --help lists them` : `did you mean: --${guess}?`;
    throw usageError(`${token.rawName} is not a flag of ${command}; ${hint}`);
  }
}

function checkChoices(flags: Flags, values: Readonly<Record<string, unknown>>): void {
  for (const [name, { choices }] of Object.entries(flags)) {
    const wrong = [values[name]].flat().find((value) => !choices?.includes(String(value)));
    if (choices === undefined || typeof wrong !== "string") continue;
    throw usageError(`--${name}: ${wrong} is not one of ${choices.join(", ")}`, name);
  }
}

const FLAG_COLUMN = 30;

export function helpText(spec: CommandSpec): string {
  const flags: Flags = { ...spec.flags, ...HELP_FLAG };
  const usage = ["rollcall", spec.name, spec.takes, "[flags]", spec.program].filter((word) => word !== undefined);
  const about = spec.more === undefined ? spec.help : `${spec.help}\n\n${spec.more}`;
  const lines = Object.entries(flags).map(([name, flag]) => flagLine(name, flag));
  return `Usage: ${usage.join(" ")}\n\n${about}\n\n${lines.join("\n")}\n`;
}

export function flagLine(name: string, { short, value, help, choices, repeatable }: Flag): string {
  const head = `  ${short === undefined ? "   " : `-${short},`} ${flagText(name, value)}`;
  const notes = [help, ...(choices ? [`one of ${choices.join(", ")}`] : [])];
  if (repeatable) notes.push("repeatable");
  const gap = head.length < FLAG_COLUMN ? " ".repeat(FLAG_COLUMN - head.length) : "  ";
  return `${head}${gap}${notes.join("; ")}`;
}

export function flagText(name: string, value: string | undefined): string {
  return value === undefined ? `--${name}` : `--${name} ${value}`;
}

/**
 * The candidate that a mistyped word most probably means: the one with the fewest letters to change; null if none is
 * near.
 */
export function nearest(word: string, candidates: readonly string[]): string | null {
  const ranked = candidates
    .map((candidate) => ({ candidate, distance: editDistance(word, candidate) }))
    .filter(({ candidate, distance }) => {
      return distance <= Math.ceil(Math.max(word.length, candidate.length) * FURTHEST);
    })
    .sort((a, b) => a.distance - b.distance);
  return ranked[0]?.candidate ?? null;
}

/** The number of letters to insert, drop or replace. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (const [at, letter] of [...from].entries()) {
    const next = [at + 1];
    for (const [column, other] of [...to].entries()) {
      const replaced = (row[column] ?? 0) + (letter === other ? 0 : 1);
      next.push(Math.min(replaced, (row[column + 1] ?? 0) + 1, (next[column] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}
