/**
 * The command line. Every command answers `--help`; with `--json` stdout holds one JSON object, also on failure.
 * Exit codes are in exit.ts, the commands, their flags and what they do in commands/.
 */
import { setImmediate } from "node:timers/promises";
import { EXIT } from "./exit.ts";
import { runCommand } from "./run-command.ts";
import { isBrokenPipe } from "./terminal/terminal.ts";

// `| head` may stop reading, and a terminal may be closed, at any time. The command goes on to its end, and nobody is
// told of what nobody reads.
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error) => {
    if (isBrokenPipe(error) || (stream.isTTY && "code" in error && error.code === "EIO")) return;
    if (stream === process.stdout) process.stderr.write(`rollcall: stdout: ${error.message}\n`);
    process.exit(EXIT.bad);
  });
}

const code = await runCommand(process.argv.slice(2));
// A disk that is full says so a moment after the write.
await setImmediate();
process.exit(code);
