/** Runs one command line, from its words to its exit code. main.ts handles the process, its signals and its end. */
import { rollcallVersion } from "../local/package-root.ts";
import { helpText, nearest, splitAtProgram } from "./command-line.ts";
import { COMMANDS, findCommand } from "./commands.ts";
import { asCommandError, type CommandError, EXIT, type ExitCode, usageError } from "./exit.ts";
import { printJson } from "./terminal/terminal.ts";
import { safeText } from "./terminal/text.ts";

/**
 * Runs the command that `words` name (`["run", "list", "--json"]`). Never throws: an error is printed to stderr, with
 * --json also to stdout, and sets the exit code.
 */
export async function runCommand(words: readonly string[]): Promise<ExitCode> {
  try {
    // `rollcall --json` names no command, and reports that in JSON.
    return await run(words.filter((word, at) => at > 0 || word !== "--json"));
  } catch (thrown) {
    const error = asCommandError(thrown);
    report(error, thrown, ownWords(words).includes("--json"));
    return error.exit;
  }
}

/** Without the words after `--`: a flag there is not the command's. */
function ownWords(words: readonly string[]): readonly string[] {
  return splitAtProgram(words)[0];
}

/** The commands that begin with these words, one per line. */
function overview(words: readonly string[]): string {
  const group = words.map((word) => `${word} `).join("");
  const named = COMMANDS.filter(({ name }) => name.startsWith(group));
  const width = Math.max(...named.map(({ name }) => name.length)) + 2;
  const lines = named.map(({ name, help }) => `  ${name.padEnd(width)}${help}`);
  return `Usage: rollcall ${group}<command> [flags]\n\n${lines.join("\n")}\n\nrollcall <command> --help shows details, rollcall --version the version.\n`;
}

function isGroup(word: string | undefined): word is string {
  return COMMANDS.some(({ name }) => name.startsWith(`${word} `));
}

async function run(words: readonly string[]): Promise<ExitCode> {
  const [first, ...rest] = words;
  if (first === "--version") {
    process.stdout.write(`${rollcallVersion()}\n`);
    return EXIT.good;
  }
  if (first === "help") return run([...rest, "--help"]);
  const own = ownWords(words);
  const help = own.includes("--help") || own.includes("-h");
  const found = findCommand(words);
  const asked = COMMANDS.find(({ name }) => name === found?.[0]);
  if (found !== null && asked !== undefined && !help) return await asked.run(found[1]);
  if (!help) throw unknownCommand(words);
  const group = isGroup(first) ? [first] : [];
  process.stdout.write(asked === undefined ? overview(group) : helpText(asked));
  return EXIT.good;
}

function unknownCommand(words: readonly string[]): CommandError {
  const [first, second] = words;
  if (first === undefined) return usageError(`a command is required\n\n${overview([])}`, "command");
  const names = COMMANDS.map(({ name }) => name);
  if (isGroup(first)) {
    const verbs = names.filter((name) => name.startsWith(`${first} `));
    if (second === undefined || second.startsWith("-")) {
      return usageError(`a command of ${first} is required: ${verbs.join(", ")}`, "command");
    }
    return noSuchCommand(`${first} ${second}`, verbs);
  }
  const firsts = [...new Set(names.map((name) => name.split(" ")[0] ?? name))];
  return noSuchCommand(first, firsts);
}

function noSuchCommand(name: string, known: readonly string[]): CommandError {
  const guess = nearest(name, known);
  const hint = guess === null ? `known commands: ${known.join(", ")}` : `did you mean: ${guess}?`;
  return usageError(`no command is called ${name}; ${hint}`, "command");
}

function report(error: CommandError, thrown: unknown, json: boolean): void {
  const { param } = error.failure;
  // An error about an id is clear without its param, and our own messages already name the flag.
  const plain = param === null || param === "id" || error === thrown;
  const where = plain || error.message.includes(param) ? "" : `${param}: `;
  // A terminal has printed ^C at the start of this line.
  const start = error.exit === EXIT.interrupted && process.stderr.isTTY ? "\n" : "";
  process.stderr.write(`${start}rollcall: ${where}${safeText(error.message)}\n`);
  const foreseen = error === thrown || error.exit !== EXIT.bad;
  if (!foreseen && thrown instanceof Error) process.stderr.write(`${thrown.stack}\n`);
  if (json) printJson({ error: error.failure });
}
