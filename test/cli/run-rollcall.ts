/** Runs the command line: in a separate process as a user does, or in one that has loaded it already. */
import { type ChildProcess, fork, spawn } from "node:child_process";
import { join } from "node:path";
import type { HostedCommand, HostedEnd } from "./command-host.ts";

export interface CommandResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const BIN = join(import.meta.dirname, "../../bin/rollcall.mjs");
const HOST = join(import.meta.dirname, "command-host.ts");

function variables(env: Readonly<Record<string, string>>) {
  return { ...process.env, OPENAI_BASE_URL: "", OPENAI_API_KEY: "", ...env };
}

/** `onStderr` gets the whole output so far each time more arrives; it may kill the process. */
export function rollcall(
  argv: readonly string[],
  env: Readonly<Record<string, string>> = {},
  onStderr: (said: string, kill: (signal: NodeJS.Signals) => void) => void = () => undefined,
  cwd: string = process.cwd(),
  stdin = "",
): Promise<CommandResult> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [BIN, ...argv], {
      cwd,
      env: variables(env),
      stdio: ["pipe", "pipe", "pipe"],
    });
    child.stdin.on("error", reject).end(stdin);
    let [stdout, stderr] = ["", ""];
    child.stdout.on("data", (part) => {
      stdout += part;
    });
    child.stderr.on("data", (part) => {
      stderr += part;
      onStderr(stderr, (signal) => child.kill(signal));
    });
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, stdout, stderr }));
  });
}

interface Surroundings {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly stdin?: string;
}

/** One for all files of a worker of the test runner. It ends with that worker. */
let host: Host | null = null;

/**
 * A command whose process is not what is tested: it runs in a process that has loaded the command line, after the
 * commands before it. Loading it takes ten times as long as most commands.
 */
export function command(argv: readonly string[], around: Surroundings = {}): Promise<CommandResult> {
  host ??= new Host();
  return host.run(argv, around);
}

class Host {
  readonly #child: ChildProcess = fork(HOST, { stdio: ["ignore", "ignore", "inherit", "ipc"] });
  readonly #asked = new Map<number, { resolve: (end: HostedEnd) => void; reject: (error: Error) => void }>();
  #count = 0;

  constructor() {
    this.#child.on("message", (end: HostedEnd) => {
      this.#asked.get(end.id)?.resolve(end);
      this.#asked.delete(end.id);
    });
    this.#child.on("exit", (code, signal) => {
      host = null;
      for (const { reject } of this.#asked.values())
        reject(new Error(`a command ended its process: ${code ?? signal}`));
    });
    this.#child.unref();
    this.#child.channel?.unref();
  }

  async run(
    argv: readonly string[],
    { env = {}, cwd = process.cwd(), stdin = "" }: Surroundings,
  ): Promise<CommandResult> {
    const id = this.#count++;
    const asked: HostedCommand = { id, argv, env: variables(env), cwd, stdin };
    const { code, stdout, stderr } = await new Promise<HostedEnd>((resolve, reject) => {
      this.#asked.set(id, { resolve, reject });
      this.#child.send(asked, (error) => {
        if (error !== null) reject(error);
      });
    });
    return { code, stdout, stderr };
  }
}
