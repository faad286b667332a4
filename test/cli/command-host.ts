/**
 * A process that loads the command line once and then runs one command after another, each with its own words,
 * variables, folder and streams. `rollcall` of run-rollcall.ts tests what a separate process adds: the exit, signals, a
 * reader that closes its end.
 */
import { Readable, Writable } from "node:stream";
// esbuild keeps the folder in which it is loaded first: here a permanent one, not a command's.
import "esbuild";
import { runCommand } from "../../src/cli/run-command.ts";

export interface HostedCommand {
  readonly id: number;
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly stdin: string;
}

export interface HostedEnd {
  readonly id: number;
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Replaces a stream of this process until the next command begins. */
function collect(name: "stdout" | "stderr"): Buffer[] {
  const parts: Buffer[] = [];
  const stream = new Writable({
    write(part: Buffer, _encoding, done) {
      parts.push(part);
      done();
    },
  });
  Object.defineProperty(process, name, { value: stream, configurable: true });
  return parts;
}

async function run({ id, argv, env, cwd, stdin }: HostedCommand): Promise<HostedEnd> {
  process.chdir(cwd);
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, env);
  process.exitCode = undefined;
  Object.defineProperty(process, "stdin", { value: Readable.from([Buffer.from(stdin)]), configurable: true });
  const [stdout, stderr] = [collect("stdout"), collect("stderr")];
  const code = await runCommand(argv);
  // Listeners of an ended command must not run at the end of this process.
  process.removeAllListeners("beforeExit");
  return { id, code, stdout: Buffer.concat(stdout).toString(), stderr: Buffer.concat(stderr).toString() };
}

let last: Promise<unknown> = Promise.resolve();
process.on("message", (command: HostedCommand) => {
  // One at a time, because they share this process's streams.
  last = last.then(async () => process.send?.(await run(command)));
});
process.on("disconnect", () => process.exit());
