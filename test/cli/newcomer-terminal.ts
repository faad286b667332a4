/** A newcomer's terminal: one shell, which keeps its folder and its exported variables. */
import { type ChildProcess, spawn } from "node:child_process";

export interface Answer {
  readonly code: number;
  /** The output, including stderr. */
  readonly text: string;
}

export class Terminal {
  readonly #shell: ChildProcess;
  #text = "";
  #heard: () => void = () => undefined;

  constructor(folder: string, env: NodeJS.ProcessEnv) {
    this.#shell = spawn("bash", ["--noprofile", "--norc"], {
      cwd: folder,
      env,
      stdio: ["pipe", "pipe", "pipe"],
    });
    for (const stream of [this.#shell.stdout, this.#shell.stderr]) {
      stream?.on("data", (part) => {
        this.#text += part;
        this.#heard();
      });
    }
  }

  /** Types a command and waits for the prompt. */
  async type(command: string): Promise<Answer> {
    const mark = `-- ${crypto.randomUUID()}`;
    this.#text = "";
    this.#shell.stdin?.write(`{ ${command}\n} </dev/null 2>&1; echo "${mark} $?"\n`);
    const [, text = "", code = ""] = await this.#until(new RegExp(`^([\\s\\S]*)${mark} (\\d+)`));
    return { code: Number(code), text };
  }

  close(): void {
    this.#shell.kill();
  }

  #until(pattern: RegExp): Promise<RegExpExecArray> {
    return new Promise((resolve) => {
      this.#heard = () => {
        const match = pattern.exec(this.#text);
        if (match !== null) resolve(match);
      };
    });
  }
}
