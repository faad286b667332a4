/**
 * The command line. Every command answers `--help`; with `--json` stdout holds one JSON object, also on failure.
 * Exit codes are in exit.ts.
 */
import { asCommandError, type CommandError, EXIT, type ExitCode, usageError } from "./exit.ts";
import { printJson } from "./terminal.ts";

const HELP = `Usage: rollcall <command> [flags]

  eval     evaluate a model on an environment
  serve    run the platform on this machine
  start    the same, with a demo (what npm start runs)

rollcall <command> --help says more.
`;

/** Loaded one by one: a command should not wait for what another needs. */
async function run(command: string | undefined, argv: readonly string[]): Promise<ExitCode> {
  switch (command) {
    case "eval":
      return (await import("./eval.ts")).evalCommand(argv);
    case "serve":
      return (await import("./serve.ts")).serveCommand(argv);
    case "start":
      return (await import("./start.ts")).startCommand(argv);
    case "help":
    case "--help":
    case "-h":
      process.stdout.write(HELP);
      return EXIT.good;
    case undefined:
      throw usageError(`name a command\n\n${HELP}`, "command");
    default:
      throw usageError(`no command is called ${command}\n\n${HELP}`, "command");
  }
}

function report(error: CommandError, thrown: unknown, json: boolean): void {
  const { param } = error.failure;
  const where = param === null || error.message.includes(param) ? "" : `${param}: `;
  process.stderr.write(`rollcall: ${where}${error.message}\n`);
  const foreseen = error === thrown || error.exit !== EXIT.bad;
  if (!foreseen && thrown instanceof Error) process.stderr.write(`${thrown.stack}\n`);
  if (json) printJson({ error: error.failure });
}

const words = process.argv.slice(2);
// `rollcall --json` names no command, and says so in JSON.
const [command, ...argv] = words.filter((word, at) => at > 0 || word !== "--json");
try {
  process.exit(await run(command, argv));
} catch (thrown) {
  const error = asCommandError(thrown);
  report(error, thrown, words.includes("--json"));
  process.exit(error.exit);
}
