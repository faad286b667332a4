/**
 * The program that plays a rollout: started without a shell, as the leader of a process group of its own, so that
 * Ctrl-C in the terminal does not reach it and its own children end with it. Of its output the last part is kept.
 */
import { type ChildProcess, spawn } from "node:child_process";
import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { CommandError, EXIT } from "../exit.ts";
import type { Variables } from "./surroundings.ts";

/** What is kept of stdout, which may be the answer, and of stderr, which may be the reason of a failure. */
const KEPT_BYTES = { stdout: 64 * 1024, stderr: 8 * 1024 };
/** From SIGTERM to SIGKILL. */
const GRACE_MS = 5000;
/** A process that left the group may keep the pipes open after the program's exit. */
const CLOSES_WITHIN_MS = 1000;

export interface ProgramOptions {
  readonly command: readonly string[];
  readonly cwd: string;
  readonly env: Variables;
  /** Called with each part of its output. */
  readonly onOutput?: ((stream: "stdout" | "stderr", part: Buffer) => void) | undefined;
}

export interface ProgramEnd {
  /** Null if a signal ended it. */
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** The last part of its output. */
  readonly stdout: string;
  readonly stderr: string;
  /** It was asked to end before it exited. */
  readonly wasStopped: boolean;
}

export class Program {
  readonly #child: ChildProcess;
  readonly #stdout: Tail;
  readonly #stderr: Tail;
  #hasExited = false;
  #wasStopped = false;

  private constructor(child: ChildProcess, stdout: Tail, stderr: Tail) {
    this.#child = child;
    this.#stdout = stdout;
    this.#stderr = stderr;
  }

  /** Throws a CommandError if the program cannot be started. */
  static async start({ command, cwd, env, onOutput }: ProgramOptions): Promise<Program> {
    const [file = "", ...args] = command;
    try {
      const child = spawn(file, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"], detached: true });
      const read = (name: "stdout" | "stderr") =>
        new Tail(child[name], KEPT_BYTES[name], (part) => onOutput?.(name, part));
      const program = new Program(child, read("stdout"), read("stderr"));
      await new Promise<void>((resolve, reject) => {
        child.once("spawn", resolve);
        child.once("error", reject);
      });
      return program;
    } catch (thrown) {
      const why = thrown instanceof Error ? thrown.message : String(thrown);
      const message = `${file}: the program cannot be started: ${why}`;
      throw new CommandError(EXIT.usage, { code: "not_started", message, type: "invalid_request_error" });
    }
  }

  /** Resolves when the program has exited. Processes that it left behind are killed. */
  async ended(): Promise<ProgramEnd> {
    const child = this.#child;
    const closed = new Promise<void>((resolve) => child.once("close", () => resolve()));
    if (child.exitCode === null && child.signalCode === null) {
      await new Promise<void>((resolve) => child.once("exit", () => resolve()));
    }
    this.#hasExited = true;
    this.#signalGroup("SIGKILL");
    const timer = new AbortController();
    const late = sleep(CLOSES_WITHIN_MS, undefined, { signal: timer.signal }).catch(() => undefined);
    await Promise.race([closed, late]);
    timer.abort();
    child.stdout?.destroy();
    child.stderr?.destroy();
    const { exitCode: code, signalCode: signal } = child;
    const output = { stdout: this.#stdout.text(), stderr: this.#stderr.text() };
    return { code, signal, ...output, wasStopped: this.#wasStopped };
  }

  /** Asks it to end, and kills it if it does not. */
  stop(): void {
    if (this.#hasExited) return;
    this.#wasStopped = true;
    this.#signalGroup("SIGTERM");
    const timer = setTimeout(() => this.kill(), GRACE_MS);
    this.#child.once("exit", () => clearTimeout(timer));
  }

  kill(): void {
    if (!this.#hasExited) this.#signalGroup("SIGKILL");
  }

  #signalGroup(signal: NodeJS.Signals): void {
    const { pid } = this.#child;
    if (pid === undefined) return;
    try {
      process.kill(-pid, signal);
    } catch (error) {
      // ESRCH: no process of the group is left. EPERM: on macOS, all that are left have exited.
      const isGone = error instanceof Error && "code" in error && (error.code === "ESRCH" || error.code === "EPERM");
      if (!isGone) throw error;
    }
  }
}

/** The last bytes of a stream. */
class Tail {
  readonly #parts: Buffer[] = [];
  readonly #most: number;
  #bytes = 0;

  constructor(stream: Readable | null, most: number, onPart: (part: Buffer) => void) {
    this.#most = most;
    stream?.on("data", (part: Buffer) => {
      onPart(part);
      this.#add(part);
    });
  }

  #add(part: Buffer): void {
    this.#parts.push(part);
    this.#bytes += part.length;
    // One part more than needed is kept, so that the last `most` bytes are always complete.
    for (let [first] = this.#parts; first && this.#bytes - first.length >= this.#most; [first] = this.#parts) {
      this.#bytes -= first.length;
      this.#parts.shift();
    }
  }

  text(): string {
    const all = Buffer.concat(this.#parts);
    if (all.length <= this.#most) return all.toString();
    const kept = all.subarray(-this.#most);
    // Not from the middle of a character of UTF-8.
    let start = 0;
    while (start < kept.length && ((kept[start] ?? 0) & 0xc0) === 0x80) start += 1;
    return kept.subarray(start).toString();
  }
}
