/**
 * A training through prime-rl's files: its output directory, a process in the place of the trainer, the bridge, which
 * may be started several times, and an engine with the routes of prime-rl's own server.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join, resolve } from "node:path";
import { expect } from "vitest";
import { plainEnvironment } from "../local/in-a-folder.ts";
import { until } from "../local/served-platform.ts";
import type { CreatedTraining } from "../local/training/training-runs.ts";
import { CutProxy, type Exchange } from "./cut-proxy.ts";

export const BRIDGE = resolve(import.meta.dirname, "../../examples/trainers/prime-rl/bridge.py");
export const [RANKS, SEQ_LEN, PAD_TO, WITHIN_MS] = [2, 96, 8, 60_000];

/** prime_rl_trainer.py lists which commits of prime-rl have which. */
export type Protocol = "handshake" | "handshake-rollouts" | "stable";
type Stage = "trained" | "accepted" | "started";

export interface Engine {
  readonly server: Server;
  readonly url: string;
  readonly asked: string[];
}

/** The routes of prime-rl's own server that the bridge called, in order. */
export async function startEngine(): Promise<Engine> {
  const asked: string[] = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const part of request) body += part;
    const [path = ""] = (request.url ?? "").split("?");
    const weights = body === "" ? "" : JSON.parse(body).weight_dir;
    const isThere = weights === "" || [".finished", "STABLE"].some((mark) => existsSync(join(weights, mark)));
    asked.push(`${path}${weights === "" ? "" : ` ${weights.split("/").at(-1)}`}`);
    response.writeHead(isThere ? 200 : 500).end("{}");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { server, asked, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

export interface Taken {
  readonly step: number;
  readonly rows: string[];
  readonly trained_tokens: number;
  readonly sha256: string[];
}

export interface TrainingPlace {
  readonly folder: string;
  /** The platform's URL. */
  readonly url: string;
  readonly engine: Engine;
}

export class Training {
  readonly output: string;
  readonly proxy: CutProxy;
  readonly created: CreatedTraining;
  readonly words: Record<string, unknown>[] = [];
  bridge: ChildProcess | null = null;
  readonly #engine: Engine;
  readonly #protocol: Protocol;
  #trainer: ChildProcess | null = null;

  constructor(
    created: CreatedTraining,
    { folder, url, engine, protocol = "handshake" }: TrainingPlace & { readonly protocol?: Protocol },
  ) {
    this.created = created;
    this.output = join(folder, created.run);
    this.proxy = new CutProxy(url);
    this.#engine = engine;
    this.#protocol = protocol;
    mkdirSync(this.output);
  }

  /** Resolves when it has published, or offers, the version that it starts from. */
  async startTrainer(python: string, steps: number, version = 0): Promise<void> {
    const script = join(import.meta.dirname, "prime_rl_trainer.py");
    const sizes = [RANKS, steps, SEQ_LEN, PAD_TO, version].map(String);
    const began = this.#trainer === null ? 0 : Date.now();
    this.#trainer = spawn(python, [script, this.output, this.#protocol, ...sizes], {
      stdio: ["ignore", "ignore", "inherit"],
    });
    const first = this.broadcast(version, this.#protocol === "stable" ? "STABLE" : ".sender_ready");
    await until(() => existsSync(first) && statSync(first).mtimeMs >= began, WITHIN_MS);
  }

  async killTrainer(): Promise<void> {
    const gone = once(this.#trainer ?? expect.unreachable(), "exit");
    this.#trainer?.kill("SIGKILL");
    await gone;
  }

  async startBridge(python: string, more: readonly string[] = []): Promise<void> {
    const url = await this.proxy.url();
    const child = spawn(python, [BRIDGE, ...this.#flags(url), ...more], {
      env: { ...plainEnvironment(), ROLLCALL_TRAINER_TOKEN: this.created.token },
      stdio: ["ignore", "pipe", "inherit"],
    });
    let rest = "";
    child.stdout.on("data", (part) => {
      const lines = `${rest}${part}`.split("\n");
      rest = lines.pop() ?? "";
      this.words.push(...lines.map((line) => JSON.parse(line)));
    });
    this.bridge = child;
  }

  #flags(url: string): string[] {
    return [
      ...["--url", url, "--run", this.created.run, "--output-dir", this.output, "--poll-s", "0.02"],
      ...["--ranks", String(RANKS), "--seq-len", String(SEQ_LEN), "--vllm", `gpu-0=${this.#engine.url}`],
      ...["--pad-to-multiple-of", String(PAD_TO)],
    ];
  }

  /** Ends it as a power cut does; resolves when it has ended. */
  async kill(): Promise<void> {
    const gone = once(this.bridge ?? expect.unreachable(), "exit");
    this.bridge?.kill("SIGKILL");
    await gone;
  }

  /** Starts the bridge and kills it when `isIt` holds for a request or for its reply. */
  async killAt(python: string, when: "asked" | "replied", isIt: (exchange: Exchange) => boolean): Promise<void> {
    const killed = Promise.withResolvers<void>();
    const watch = async (exchange: Exchange, status = 200) => {
      if (!isIt(exchange) || status !== 200) return true;
      this.proxy.watcher = {};
      await this.kill();
      killed.resolve();
      return false;
    };
    this.proxy.watcher = { [when]: watch };
    if (this.bridge === null || this.bridge.exitCode !== null || this.bridge.signalCode !== null) {
      await this.startBridge(python);
    }
    await killed.promise;
  }

  said(word: string, step?: number): boolean {
    return this.words.some((line) => line["bridge"] === word && (step === undefined || line["step"] === step));
  }

  /** Holds the trainer at a stage of a step until the returned function is called. */
  hold(step: number, stage: Stage): () => void {
    const file = join(this.output, `hold_${step}_${stage}`);
    writeFileSync(file, "");
    return () => rmSync(file);
  }

  get batches(): "batches" | "rollouts" {
    return this.#protocol === "handshake" ? "batches" : "rollouts";
  }

  file(step: number, rank: number): string {
    return join(this.output, `${this.batches}/step_${step}/rank_${rank}.bin`);
  }

  broadcast(version: number, mark: string): string {
    return join(this.output, `broadcasts/step_${version}/${mark}`);
  }

  has(version: number, mark: ".sender_ready" | ".receiver_ready" | ".started" | ".finished" | "STABLE"): boolean {
    return existsSync(this.broadcast(version, mark));
  }

  taken(): Taken[] {
    const lines = readFileSync(join(this.output, "trained.jsonl"), "utf8").trimEnd().split("\n");
    return lines.map((line) => JSON.parse(line));
  }

  /** Removes what prime-rl removes when it continues from the checkpoint of a step, or starts again. */
  async loseStepsAfter(step: number): Promise<void> {
    await this.killTrainer();
    for (const name of [this.batches, "broadcasts"]) {
      const steps = readdirSync(join(this.output, name)).filter((folder) => Number(folder.slice(5)) > step);
      for (const folder of steps) rmSync(join(this.output, name, folder), { recursive: true });
    }
  }

  stop(): void {
    this.bridge?.kill("SIGKILL");
    this.#trainer?.kill("SIGKILL");
    this.proxy.stop();
  }
}
