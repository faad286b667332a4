/**
 * The bridge beside a trainer that speaks prime-rl's files, on the real platform with the real policy: what it writes is
 * decoded by msgspec, and it is killed at each point at which something could be trained twice or lost.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { makeThrowAwayDirectory } from "../../src/local/state-directory.ts";
import golden from "../core/training/formats/prime-rl.json" with { type: "json" };
import { plainEnvironment, runIn } from "../local/in-a-folder.ts";
import { deathOf, endGroup, type Served, serve, until } from "../local/served-platform.ts";
import { testPort } from "../local/test-port.ts";
import { type CreatedTraining, smallRun, trainerOf } from "../local/training/training-runs.ts";
import { pythonVenv, type Venv } from "../python/python-venv.ts";
import { CutProxy, type Exchange } from "./cut-proxy.ts";

const BRIDGE = resolve(import.meta.dirname, "../../examples/trainers/prime-rl/bridge.py");
const [RANKS, SEQ_LEN] = [2, 96];
const WITHIN_MS = 60_000;

const directory = makeThrowAwayDirectory();
const folder = mkdtempSync(join(tmpdir(), "rollcall-bridge-"));
let venv: Venv | null = null;
let served: Served;
let engine: { readonly server: Server; readonly url: string; readonly asked: string[] };

beforeAll(async () => {
  venv = await pythonVenv("bridges", join(import.meta.dirname, "requirements.txt"), "ROLLCALL_BRIDGES_VENV");
  if (venv === null) return;
  engine = await startEngine();
  served = await serve(directory, testPort(30));
});
afterAll(async () => {
  engine?.server.close();
  if (served !== undefined) {
    endGroup(served);
    await deathOf(served.workerd);
  }
  rmSync(directory, { recursive: true, force: true });
  rmSync(folder, { recursive: true, force: true });
});

/** The routes of prime-rl's own server that the bridge calls, in the order in which they were called. */
async function startEngine() {
  const asked: string[] = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const part of request) body += part;
    const [path = ""] = (request.url ?? "").split("?");
    const weights = body === "" ? "" : JSON.parse(body).weight_dir;
    const isThere = weights === "" || existsSync(join(weights, "STABLE"));
    asked.push(`${path}${weights === "" ? "" : ` ${weights.split("/").at(-1)}`}`);
    response.writeHead(isThere ? 200 : 500).end("{}");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { server, asked, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

interface Taken {
  readonly step: number;
  readonly rows: string[];
  readonly trained_tokens: number;
  readonly sha256: string[];
}

/** One training: its output directory, the trainer's process, and the bridge, which may be started several times. */
class Training {
  readonly output: string;
  readonly proxy: CutProxy;
  readonly created: CreatedTraining;
  readonly words: Record<string, unknown>[] = [];
  bridge: ChildProcess | null = null;
  #trainer: ChildProcess | null = null;

  constructor(created: CreatedTraining) {
    this.created = created;
    this.output = join(folder, created.run);
    this.proxy = new CutProxy(served.url);
    mkdirSync(this.output);
  }

  async startTrainer(python: string, steps: number): Promise<void> {
    const script = join(import.meta.dirname, "prime_rl_trainer.py");
    const args = [script, this.output, String(RANKS), String(steps), String(SEQ_LEN)];
    this.#trainer = spawn(python, args, { stdio: ["ignore", "ignore", "inherit"] });
    await until(() => existsSync(join(this.output, "broadcasts/step_0/STABLE")), WITHIN_MS);
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
      ...["--ranks", String(RANKS), "--seq-len", String(SEQ_LEN), "--vllm", `gpu-0=${engine.url}`],
    ];
  }

  /** Ends it as a power cut does; resolves when it is gone. */
  async kill(): Promise<void> {
    const gone = once(this.bridge ?? expect.unreachable(), "exit");
    this.bridge?.kill("SIGKILL");
    await gone;
  }

  /** Starts the bridge and kills it at the moment at which `isIt` is asked or answered. */
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

  hold(step: number): () => void {
    const file = join(this.output, `hold_${step}`);
    writeFileSync(file, "");
    return () => rmSync(file);
  }

  file(step: number, rank: number): string {
    return join(this.output, `rollouts/step_${step}/rank_${rank}.bin`);
  }

  stable(step: number): boolean {
    return existsSync(join(this.output, `broadcasts/step_${step}/STABLE`));
  }

  taken(): Taken[] {
    const lines = readFileSync(join(this.output, "trained.jsonl"), "utf8").trimEnd().split("\n");
    return lines.map((line) => JSON.parse(line));
  }

  /** What prime-rl removes when it goes on from the checkpoint of a step, or begins anew. */
  async loseStepsAfter(step: number): Promise<void> {
    const gone = once(this.#trainer ?? expect.unreachable(), "exit");
    this.#trainer?.kill("SIGKILL");
    await gone;
    for (const name of ["rollouts", "broadcasts"]) {
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

const posts = (ending: string, words = "") => {
  return ({ method, path, body }: Exchange) => method === "POST" && path.endsWith(ending) && body.includes(words);
};

/** Every batch went to the trainer once, whole, and as the platform itself packs it. */
async function expectTrainedOnce(training: Training, steps: number): Promise<void> {
  const client = trainerOf(served, training.created);
  const taken = training.taken();
  expect(taken.map(({ step }) => step)).toEqual(Array.from({ length: steps }, (_, at) => at + 1));
  for (const { step, rows, trained_tokens, sha256 } of taken) {
    const manifest = await client.manifest(step);
    const credits = (await client.credits(step)).trimEnd().split("\n");
    const named = credits.map((line) => String(JSON.parse(line).sample_id).replace(/\.\d+$/, ""));
    expect(rows, `step ${step}`).toEqual(named.sort());
    expect(trained_tokens).toBe(manifest.trainable_tokens);
    for (const rank of Array(RANKS).keys()) {
      const { body } = await client.batchAs(step, { format: "prime-rl", seq_len: SEQ_LEN, ranks: RANKS, rank });
      const bytes = new Uint8Array(await new Response(body).arrayBuffer());
      expect(createHash("sha256").update(bytes).digest("hex")).toBe(sha256[rank]);
    }
  }
}

test("a run is trained to its end by files alone, and each version reaches the engine: pause, update, resume", async ({
  skip,
}) => {
  const { python } = venv ?? skip();
  const training = new Training(await smallRun(served, { encoding: "msgpack" }));
  try {
    engine.asked.length = 0;
    await training.startTrainer(python, 2);
    await training.startBridge(python);
    const run = await training.created.ended(served);
    expect([run.status, run.training?.steps_trained]).toEqual(["completed", 2]);
    await until(() => training.said("finished"), WITHIN_MS);
    await expectTrainedOnce(training, 2);
    const ledger = await trainerOf(served, training.created).ledger();
    expect(ledger).toMatchObject({ published: 2, applied: { by_replica: { "gpu-0": 2 } } });
    expect(ledger.versions[0]?.location).toMatch(/\/broadcasts\/step_2$/);
    expect(engine.asked.slice(0, 3)).toEqual(["/pause", "/update_weights step_0", "/resume"]);
    expect(engine.asked.slice(-3)).toEqual(["/pause", "/update_weights step_2", "/resume"]);
  } finally {
    training.stop();
  }
});

test("killed at every point between a lease and its last report, it trains no batch twice and loses none", async ({
  skip,
}) => {
  const { python } = venv ?? skip();
  const steps = 6;
  const training = new Training(await smallRun(served, { encoding: "jsonl" }, { max_steps: steps }));
  try {
    await training.startTrainer(python, steps);
    // After the lease: nothing was written.
    await training.killAt(python, "replied", posts("/trainer/lease"));
    expect(existsSync(training.file(1, 0))).toBe(false);

    // After the rank files: the trainer trains while nobody is there.
    const release = training.hold(1);
    await training.startBridge(python);
    await until(() => existsSync(training.file(1, RANKS - 1)), WITHIN_MS);
    await training.kill();
    release();
    await until(() => training.stable(1), WITHIN_MS);

    // After STABLE, before the ack: of step 2, since the registration acknowledges step 1.
    await training.killAt(python, "asked", posts("/ack"));
    expect(training.stable(2)).toBe(true);
    // After the ack, which nobody heard of; step 2 was acknowledged by the registration.
    await training.killAt(python, "replied", posts("/ack"));
    expect(training.stable(3)).toBe(true);
    // After the registration that knows of it, before `published` is said again.
    await training.killAt(python, "asked", posts("/weight-versions", '"published"'));
    // After published, before applied.
    await training.killAt(python, "asked", posts("/weight-versions", '"version": 4, "state": "applied"'));
    await training.startBridge(python);
    const run = await training.created.ended(served);
    expect([run.status, run.training?.steps_trained]).toEqual(["completed", steps]);
    await until(() => training.said("finished"), WITHIN_MS);
    await expectTrainedOnce(training, steps);
    expect((await trainerOf(served, training.created).ledger()).applied.min).toBe(steps);
  } finally {
    training.stop();
  }
});

test("told to stop it ends cleanly, and started again it goes on with the batch that the trainer has", async ({
  skip,
}) => {
  const { python } = venv ?? skip();
  const training = new Training(await smallRun(served, { encoding: "jsonl" }));
  try {
    await training.startTrainer(python, 2);
    const release = training.hold(1);
    await training.startBridge(python);
    await until(() => training.said("written", 1), WITHIN_MS);
    const exit = once(training.bridge ?? expect.unreachable(), "exit");
    training.bridge?.kill("SIGTERM");
    expect(await exit).toEqual([0, null]);
    expect(training.said("stopped")).toBe(true);
    await training.startBridge(python);
    await until(() => training.words.filter(({ bridge }) => bridge === "leased").length === 2, WITHIN_MS);
    release();
    await training.created.ended(served);
    await expectTrainedOnce(training, 2);
    expect(training.words.filter(({ bridge, step }) => bridge === "written" && step === 1).length).toBe(1);
  } finally {
    training.stop();
  }
});

test("a trainer that lost its steps goes back once, whatever the flags of the next start, and names who serves it", async ({
  skip,
}) => {
  const { python } = venv ?? skip();
  const training = new Training(await smallRun(served, { encoding: "jsonl" }));
  const flags = ["--reset-to", "0", "--replica", "gpu-1"];
  const applied = (step: number) => writeFileSync(join(training.output, `broadcasts/step_${step}/APPLIED.gpu-1`), "");
  try {
    const release = training.hold(2);
    await training.startTrainer(python, 2);
    await training.startBridge(python);
    await until(() => training.said("written", 2), WITHIN_MS);
    await until(() => training.taken().length === 2, WITHIN_MS);
    await training.kill();
    await training.loseStepsAfter(0);
    await training.startTrainer(python, 2);
    applied(0);
    await training.startBridge(python, flags);
    await until(
      () => training.words.filter(({ bridge, step }) => bridge === "acked" && step === 1).length === 2,
      WITHIN_MS,
    );
    applied(1);
    await training.kill();
    await training.startBridge(python, flags);
    release();
    const run = await training.created.ended(served);
    applied(2);
    expect([run.status, run.training?.steps_trained]).toEqual(["completed", 2]);
    await until(() => training.said("finished"), WITHIN_MS);
    expect(training.taken().map(({ step }) => step)).toEqual([1, 2, 1, 2]);
    const { generation, applied: serving } = await trainerOf(served, training.created).ledger();
    expect([generation, serving.by_replica]).toEqual([1, { "gpu-0": 2, "gpu-1": 2 }]);
  } finally {
    training.stop();
  }
});

test("files of another batch, or packed otherwise, are never written over", async ({ skip }) => {
  const { python } = venv ?? skip();
  const training = new Training(await smallRun(served, { encoding: "jsonl" }));
  try {
    mkdirSync(join(training.output, "rollouts/step_1"), { recursive: true });
    writeFileSync(training.file(1, 0), "of another training");
    await training.startBridge(python);
    const [code] = await once(training.bridge ?? expect.unreachable(), "exit");
    expect([code, training.said("failed")]).toEqual([1, true]);
    expect(readFileSync(training.file(1, 0), "utf8")).toBe("of another training");
  } finally {
    training.stop();
  }
});

test("its bytes are those that prime-rl itself was recorded with", async ({ skip }) => {
  const { python } = venv ?? skip();
  const row = {
    ...{ sample_id: "ro_1.0", rollout_id: "ro_1", env: "e", token_ids: [1, 2, 300], mask: [0, 1, 1] },
    ...{ logprobs: [0, -0.25, -1.5], temperature: 1 },
  };
  const program = `import gzip, sys; sys.dont_write_bytecode = True; sys.path.insert(0, sys.argv[1])
from bridge import rank_bytes, rows_of
rows = [{**row, "advantage": 0.5} for row in rows_of(gzip.compress(sys.argv[2].encode()), "rl.sample/1+jsonl+gzip")]
print(rank_bytes(rows, 1, 8, 1)[0].hex())`;
  const { stdout } = await runIn(folder, [python, "-c", program, dirname(BRIDGE), JSON.stringify(row)]);
  expect(stdout.trim()).toBe(golden.named.hex);
});

test("its flags are told by --help, and a wrong one is refused by name", async ({ skip }) => {
  const { python } = venv ?? skip();
  const help = await runIn(folder, [python, BRIDGE, "--help"]);
  expect([help.code, help.stdout.includes("--seq-len")]).toEqual([0, true]);
  const flags = ["--url", "http://x", "--run", "run_1", "--token", "t", "--output-dir", folder, "--seq-len", "0"];
  const wrong = await runIn(folder, [python, BRIDGE, ...flags]);
  expect([wrong.code, wrong.stderr.includes("--seq-len is at least 2")]).toEqual([2, true]);
});
