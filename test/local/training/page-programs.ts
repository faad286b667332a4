/** The programs of docs/training.md as files in a folder, run as the page says. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { rollcallName } from "../../../src/local/package-root.ts";
import { makeThrowAwayDirectory } from "../../../src/local/state-directory.ts";
import { plainEnvironment, succeedIn } from "../in-a-folder.ts";
import { block } from "./documented.ts";

const ROOT = resolve(import.meta.dirname, "../../..");

/** The arguments of a trainer. */
export interface Assignment {
  readonly url: string;
  readonly run: string;
  readonly token: string;
}

/** One line of a program's output. */
export interface TrainedStep {
  readonly step: number;
  readonly rows: number;
}

export class PagePrograms {
  readonly folder = makeThrowAwayDirectory();
  readonly #receivers: ChildProcess[] = [];

  constructor() {
    const own = join(this.folder, "node_modules", rollcallName());
    mkdirSync(dirname(own), { recursive: true });
    symlinkSync(ROOT, own);
    writeFileSync(join(this.folder, "package.json"), '{"type":"module"}');
    writeFileSync(join(this.folder, "trainer.py"), block("python"));
    writeFileSync(join(this.folder, "trainer.ts"), block("ts"));
    writeFileSync(join(this.folder, "receiver.mjs"), block("js"));
  }

  inPython(to: Assignment): Promise<TrainedStep[]> {
    return this.#trainer(["python3", "trainer.py"], to);
  }

  inTypeScript(to: Assignment): Promise<TrainedStep[]> {
    return this.#trainer([process.execPath, "trainer.ts"], to);
  }

  /** Resolves when it listens. `lines` grows by one for each batch. */
  async receiver(port: number, token: string, secret: string): Promise<{ lines: TrainedStep[] }> {
    const args = ["receiver.mjs", String(port), token, secret];
    const child = spawn(process.execPath, args, {
      cwd: this.folder,
      env: plainEnvironment(),
      stdio: ["ignore", "pipe", "inherit"],
    });
    this.#receivers.push(child);
    const lines: TrainedStep[] = [];
    await once(child.stdout, "data");
    child.stdout.on("data", (text) => lines.push(...parsed<TrainedStep>(String(text))));
    return { lines };
  }

  remove(): void {
    for (const child of this.#receivers) child.kill("SIGKILL");
    rmSync(this.folder, { recursive: true, force: true });
  }

  async #trainer(program: readonly [string, string], { url, run, token }: Assignment): Promise<TrainedStep[]> {
    return parsed(await succeedIn(this.folder, [...program, url, run, token, `${run}.json`]));
  }
}

export const HAS_PYTHON = spawnSync("python3", ["--version"]).status === 0;

function parsed<Line>(text: string): Line[] {
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
}
