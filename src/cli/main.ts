/**
 * The entry point of the command line. Every command takes `--help`; with `--json` stdout holds one JSON object, also
 * on failure. exit.ts has the exit codes; commands/ has the commands, their flags and their code.
 */
import { setImmediate } from "node:timers/promises";
import { EXIT } from "./exit.ts";
import { runCommand } from "./run-command.ts";
import { isBrokenPipe } from "./terminal/terminal.ts";

// `| head` may stop reading, and a terminal may close, at any time. The command continues to its end, and the lost
// output is not reported.
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error) => {
    if (isBrokenPipe(error) || (stream.isTTY && "code" in error && error.code === "EIO")) return;
    if (stream === process.stdout) process.stderr.write(`rollcall: stdout: ${error.message}\n`);
    process.exit(EXIT.bad);
  });
}

const code = await runCommand(process.argv.slice(2));
// A full disk reports its error a moment after the write.
await setImmediate();
process.exit(code);
