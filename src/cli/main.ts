/**
 * The command line. Every command answers `--help`; with `--json` stdout holds one JSON object, also on failure.
 * Exit codes are in exit.ts, the commands and their flags in commands.ts.
 */
import { setImmediate } from "node:timers/promises";
import { rollcallVersion } from "../local/package-root.ts";
import { helpText, nearest } from "./command-line.ts";
import { COMMANDS, type CommandName, findCommand } from "./commands.ts";
import { asCommandError, type CommandError, EXIT, type ExitCode, usageError } from "./exit.ts";
import { isBrokenPipe, printJson } from "./terminal/terminal.ts";
import { safeText } from "./terminal/text.ts";

type Handler = (argv: readonly string[]) => Promise<ExitCode>;

/** Loaded one by one: a command should not wait for what another needs. */
const HANDLERS: Readonly<Record<CommandName, Handler>> = {
  eval: async (argv) => (await import("./eval/eval.ts")).evalCommand(argv),
  train: async (argv) => (await import("./train/train.ts")).trainCommand(argv),
  compare: async (argv) => (await import("./commands/compare.ts")).compareCommand(argv),
  generate: async (argv) => (await import("./commands/generate.ts")).generateCommand(argv),
  rescore: async (argv) => (await import("./commands/rescore.ts")).rescoreCommand(argv),
  "run list": async (argv) => (await import("./commands/run-list.ts")).runListCommand(argv),
  "run show": async (argv) => (await import("./commands/run-show.ts")).runShowCommand(argv),
  "run watch": async (argv) => (await import("./commands/run-watch.ts")).runWatchCommand(argv),
  "run cancel": async (argv) => (await import("./commands/run-show.ts")).runCancelCommand(argv),
  "run pause": async (argv) => (await import("./commands/run-control.ts")).runPauseCommand(argv),
  "run resume": async (argv) => (await import("./commands/run-control.ts")).runResumeCommand(argv),
  "run update": async (argv) => (await import("./commands/run-control.ts")).runUpdateCommand(argv),
  "run retry": async (argv) => (await import("./commands/run-control.ts")).runRetryCommand(argv),
  "run audit": async (argv) => (await import("./commands/run-audit.ts")).runAuditCommand(argv),
  "run results": async (argv) => (await import("./commands/run-results.ts")).runResultsCommand(argv),
  "run export": async (argv) => (await import("./commands/run-export.ts")).runExportCommand(argv),
  "rollout show": async (argv) => (await import("./commands/rollout-show.ts")).rolloutShowCommand(argv),
  "rollout cancel": async (argv) => (await import("./commands/rollout-control.ts")).rolloutCancelCommand(argv),
  "rollout fork": async (argv) => (await import("./commands/rollout-control.ts")).rolloutForkCommand(argv),
  "dataset push": async (argv) => (await import("./commands/dataset-push.ts")).datasetPushCommand(argv),
  "dataset list": async (argv) => (await import("./commands/dataset.ts")).datasetListCommand(argv),
  "dataset show": async (argv) => (await import("./commands/dataset.ts")).datasetShowCommand(argv),
  "dataset delete": async (argv) => (await import("./commands/dataset.ts")).datasetDeleteCommand(argv),
  "endpoint add": async (argv) => (await import("./commands/endpoint-write.ts")).endpointAddCommand(argv),
  "endpoint list": async (argv) => (await import("./commands/endpoint.ts")).endpointListCommand(argv),
  "endpoint show": async (argv) => (await import("./commands/endpoint.ts")).endpointShowCommand(argv),
  "endpoint update": async (argv) => (await import("./commands/endpoint-write.ts")).endpointUpdateCommand(argv),
  "endpoint delete": async (argv) => (await import("./commands/endpoint.ts")).endpointDeleteCommand(argv),
  "endpoint probe": async (argv) => (await import("./commands/endpoint.ts")).endpointProbeCommand(argv),
  "secret set": async (argv) => (await import("./commands/secret.ts")).secretSetCommand(argv),
  "secret list": async (argv) => (await import("./commands/secret.ts")).secretListCommand(argv),
  "secret delete": async (argv) => (await import("./commands/secret.ts")).secretDeleteCommand(argv),
  "env list": async (argv) => (await import("./commands/env-list.ts")).envListCommand(argv),
  "env init": async (argv) => (await import("./commands/env-init.ts")).envInitCommand(argv),
  "env validate": async (argv) => (await import("./commands/env-validate.ts")).envValidateCommand(argv),
  serve: async (argv) => (await import("./commands/serve.ts")).serveCommand(argv),
  start: async (argv) => (await import("./commands/start.ts")).startCommand(argv),
  completion: async (argv) => (await import("./commands/completion.ts")).completionCommand(argv),
};

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
  if (found !== null && !help) return HANDLERS[found[0]](found[1]);
  if (!help) throw unknownCommand(words);
  const spec = COMMANDS.find(({ name }) => name === found?.[0]);
  const group = isGroup(first) ? [first] : [];
  process.stdout.write(spec === undefined ? overview(group) : helpText(spec));
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
