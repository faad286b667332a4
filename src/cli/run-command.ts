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

const SUMMARY_COLUMNS = 90;
/** `rollcall help all`. */
const EVERY_COMMAND = "all";

/** The commands that begin with these words, one per line. */
function overview(words: readonly string[]): string {
  const group = words.map((word) => `${word} `).join("");
  const named = COMMANDS.filter(({ name }) => name.startsWith(group));
  const width = Math.max(...named.map(({ name }) => name.length)) + 2;
  const lines = named.map(({ name, help }) => `  ${name.padEnd(width)}${help}`);
  return `Usage: rollcall ${group}<command> [flags]\n\n${lines.join("\n")}\n\nrollcall <command> --help shows details, rollcall --version the version.\n`;
}

/** A line for each command of one word, and for each group of commands with its verbs. */
function summary(): string {
  const groups = [...Map.groupBy(COMMANDS, ({ name }) => name.split(" ")[0] ?? name)];
  const width = Math.max(...groups.map(([first]) => first.length)) + 2;
  const lines = groups.map(([first, own]) => {
    const verbs = own.flatMap(({ name }) => name.split(" ")[1] ?? []);
    const alone = own.find(({ name }) => name === first);
    const list = listWithin(SUMMARY_COLUMNS - width, [...new Set(verbs)]);
    return `  ${first.padEnd(width)}${alone?.help ?? list}`;
  });
  return `Usage: rollcall <command> [flags]

${lines.join("\n")}

rollcall <command> --help shows details, rollcall help all every command, rollcall --version the version.
`;
}

/** As many words as the columns have room for. */
function listWithin(columns: number, words: readonly string[]): string {
  const whole = words.join(", ");
  if (whole.length <= columns) return whole;
  const room = whole.slice(0, columns - ", …".length + 1);
  return `${room.slice(0, room.lastIndexOf(","))}, …`;
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
  process.stdout.write(asked === undefined ? listOf(first) : helpText(asked));
  return EXIT.good;
}

function listOf(first: string | undefined): string {
  if (isGroup(first)) return overview([first]);
  return first === EVERY_COMMAND ? overview([]) : summary();
}

function unknownCommand(words: readonly string[]): CommandError {
  const [first, second] = words;
  if (first === undefined) return usageError(`a command is required\n\n${summary()}`, "command");
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
