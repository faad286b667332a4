/**
 * The command line. Every command answers `--help`; with `--json` stdout holds one JSON object, also on failure.
 * Exit codes are in exit.ts, the commands, their flags and what they do in commands/.
 */
import { setImmediate } from "node:timers/promises";
import { rollcallVersion } from "../local/package-root.ts";
import { helpText, nearest } from "./command-line.ts";
import { COMMANDS, findCommand } from "./commands.ts";
import { asCommandError, type CommandError, EXIT, type ExitCode, usageError } from "./exit.ts";
import { isBrokenPipe, printJson } from "./terminal/terminal.ts";
import { safeText } from "./terminal/text.ts";

const NAME_COLUMN = 18;

/** The commands that begin with these words, a line each. */
function overview(words: readonly string[]): string {
  const group = words.map((word) => `${word} `).join("");
  const lines = COMMANDS.filter(({ name }) => name.startsWith(group)).map(({ name, says }) => {
    return `  ${name.padEnd(NAME_COLUMN)}${says}`;
  });
  return `Usage: rollcall ${group}<command> [flags]\n\n${lines.join("\n")}\n\nrollcall <command> --help says more, rollcall --version which this is.\n`;
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
  const help = words.includes("--help") || words.includes("-h");
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
  if (first === undefined) return usageError(`name a command\n\n${overview([])}`, "command");
  const names = COMMANDS.map(({ name }) => name);
  if (isGroup(first)) {
    const verbs = names.filter((name) => name.startsWith(`${first} `));
    if (second === undefined || second.startsWith("-")) {
      return usageError(`name a command of ${first}: ${verbs.join(", ")}`, "command");
    }
    return noSuchCommand(`${first} ${second}`, verbs);
  }
  const firsts = [...new Set(names.map((name) => name.split(" ")[0] ?? name))];
  return noSuchCommand(first, firsts);
}

function noSuchCommand(name: string, known: readonly string[]): CommandError {
  const guess = nearest(name, known);
  const hint = guess === null ? `there are: ${known.join(", ")}` : `did you mean: ${guess}?`;
  return usageError(`no command is called ${name}; ${hint}`, "command");
}

function report(error: CommandError, thrown: unknown, json: boolean): void {
  const { param } = error.failure;
  // What was wrong with an id is plain; our own words name the flag already.
  const plain = param === null || param === "id" || error === thrown;
  const where = plain || error.message.includes(param) ? "" : `${param}: `;
  // A terminal has written ^C at the start of this line.
  const start = error.exit === EXIT.interrupted && process.stderr.isTTY ? "\n" : "";
  process.stderr.write(`${start}rollcall: ${where}${safeText(error.message)}\n`);
  const foreseen = error === thrown || error.exit !== EXIT.bad;
  if (!foreseen && thrown instanceof Error) process.stderr.write(`${thrown.stack}\n`);
  if (json) printJson({ error: error.failure });
}

// `| head` may stop reading, and a terminal may be closed, at any time. The command goes on to its end, and nobody is
// told of what nobody reads.
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error) => {
    if (isBrokenPipe(error) || (stream.isTTY && "code" in error && error.code === "EIO")) return;
    if (stream === process.stdout) process.stderr.write(`rollcall: stdout: ${error.message}\n`);
    process.exit(EXIT.bad);
  });
}

const words = process.argv.slice(2);
try {
  // `rollcall --json` names no command, and says so in JSON.
  const code = await run(words.filter((word, at) => at > 0 || word !== "--json"));
  // A disk that is full says so a moment after the write.
  await setImmediate();
  process.exit(code);
} catch (thrown) {
  const error = asCommandError(thrown);
  report(error, thrown, words.includes("--json"));
  process.exit(error.exit);
}
