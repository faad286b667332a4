/**
 * The bridge with a trainer that uses prime-rl's files, on the real platform with the real policy. The test decodes its
 * files with msgspec, and kills it at each point at which a batch could be trained twice or lost.
 */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { dummyOf, encodeMicroBatch, listHeader } from "../../src/core/training/formats/micro-batch.ts";
import { makeThrowAwayDirectory } from "../../src/local/state-directory.ts";
import golden from "../core/training/formats/prime-rl.json" with { type: "json" };
import { runIn } from "../local/in-a-folder.ts";
import { BIN, deathOf, endGroup, type Served, serve, until } from "../local/served-platform.ts";
import { testPort } from "../local/test-port.ts";
import { type CreatedTraining, smallRun, trainerOf } from "../local/training/training-runs.ts";
import { pythonVenv, type Venv } from "../python/python-venv.ts";
import type { Exchange } from "./cut-proxy.ts";
import {
  BRIDGE,
  type Engine,
  PAD_TO,
  type Protocol,
  RANKS,
  SEQ_LEN,
  startEngine,
  Training,
  WITHIN_MS,
} from "./prime-rl-training.ts";

const directory = makeThrowAwayDirectory();
const folder = mkdtempSync(join(tmpdir(), "rollcall-bridge-"));
let venv: Venv | null = null;
let served: Served;
let engine: Engine;

beforeAll(async () => {
  venv = await pythonVenv("bridges", join(import.meta.dirname, "requirements.txt"), "ROLLCALL_BRIDGES_VENV");
  if (venv === null) return;
  engine = await startEngine();
  writeGroup();
  const port = testPort(30);
  served = await serve(directory, port, [BIN, "serve", "--json", "--port", String(port), "--env", join(folder, GROUP)]);
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

const GROUP = "two-members";

/** A group of environments as a user writes one. */
function writeGroup(): void {
  mkdirSync(join(folder, GROUP));
  const rollcall = { environment: "./environment.ts" };
  writeFileSync(join(folder, GROUP, "package.json"), JSON.stringify({ name: GROUP, version: "0.1.0", rollcall }));
  writeFileSync(
    join(folder, GROUP, "environment.ts"),
    `import { dataset, defineEnvironment, EnvGroup, SingleTurnEnv } from "rollcall";
import * as z from "zod";

const Task = z.object({ question: z.string() });
const member = (of: string) =>
  new SingleTurnEnv({
    dataset: dataset(Task, (at) => ({ question: of + " " + at })),
    rubric: { rewards: { length: ({ completion }) => JSON.stringify(completion).length % 7 } },
  });
export const loadEnvironment = defineEnvironment({
  args: z.strictObject({}),
  build: () => new EnvGroup({ few: member("few"), many: member("many") }),
});
`,
  );
}

function trainingOf(created: CreatedTraining, protocol: Protocol = "handshake"): Training {
  return new Training(created, { folder, url: served.url, engine, protocol });
}

const posts = (ending: string, words = "") => {
  return ({ method, path, body }: Exchange) => method === "POST" && path.endsWith(ending) && body.includes(words);
};

/** Every batch reached the trainer once, complete, and packed as the platform itself packs it. */
async function expectTrainedOnce(training: Training, steps: number): Promise<void> {
  const client = trainerOf(served, training.created);
  const sizes = { seq_len: SEQ_LEN, ranks: RANKS, pad_to_multiple_of: PAD_TO };
  const taken = training.taken();
  expect(taken.map(({ step }) => step)).toEqual(Array.from({ length: steps }, (_, at) => at + 1));
  for (const { step, rows, trained_tokens, sha256 } of taken) {
    const manifest = await client.manifest(step);
    const credits = (await client.credits(step)).trimEnd().split("\n");
    const named = credits.map((line) => String(JSON.parse(line).sample_id).replace(/\.\d+$/, ""));
    expect(rows, `step ${step}`).toEqual(named.sort());
    expect(trained_tokens).toBe(manifest.trainable_tokens);
    for (const rank of Array(RANKS).keys()) {
      const { body } = await client.batchAs(step, { format: "prime-rl", ...sizes, rank });
      const bytes = new Uint8Array(await new Response(body).arrayBuffer());
      expect(createHash("sha256").update(bytes).digest("hex")).toBe(sha256[rank]);
    }
  }
}

test.for([
  ["handshake", []],
  ["handshake-rollouts", ["--batches-folder", "rollouts"]],
  ["stable", []],
] as const)(
  "a run is trained to its end with the files of %s, and each version reaches the engine",
  async ([protocol, flags], { skip }) => {
    const { python } = venv ?? skip();
    const training = trainingOf(await smallRun(served, { encoding: "msgpack" }), protocol);
    try {
      engine.asked.length = 0;
      const release = training.hold(1, "trained");
      await training.startTrainer(python, 2);
      await training.startBridge(python, flags);
      await until(() => engine.asked.length === 3, WITHIN_MS);
      release();
      const run = await training.created.ended(served);
      expect([run.status, run.training?.steps_trained]).toEqual(["completed", 2]);
      await until(() => training.said("finished"), WITHIN_MS);
      await expectTrainedOnce(training, 2);
      const weights = await trainerOf(served, training.created).weightVersions();
      expect(weights).toMatchObject({ published: 2, applied: { by_replica: { "gpu-0": 2 } } });
      expect(weights.versions[0]?.location).toMatch(/\/broadcasts\/step_2$/);
      expect(engine.asked.slice(0, 3)).toEqual(["/pause", "/update_weights step_0", "/resume"]);
      expect(engine.asked.slice(-3)).toEqual(["/pause", "/update_weights step_2", "/resume"]);
    } finally {
      training.stop();
    }
  },
);

test("prime-rl's own types decode batches whose members have groups of several sizes and advantages of their own", async ({
  skip,
}) => {
  const { python } = venv ?? skip();
  const members = { few: { ratio: 1, group_size: 2, advantage: { name: "rloo" as const } }, many: { ratio: 2 } };
  const asked = { environment: GROUP, environment_args: {}, members, batch_size: { rollouts: 16 } };
  const training = trainingOf(await smallRun(served, { encoding: "msgpack" }, asked), "stable");
  try {
    await training.startTrainer(python, 2);
    await training.startBridge(python);
    const run = await training.created.ended(served);
    expect([run.status, run.training?.steps_trained]).toEqual(["completed", 2]);
    await until(() => training.said("finished"), WITHIN_MS);
    await expectTrainedOnce(training, 2);
    const client = trainerOf(served, training.created);
    const { estimators, estimator } = await client.manifest(1);
    expect([estimators?.["few"]?.name, estimators?.["many"]?.name, estimator.name]).toEqual(["rloo", "mean", "mean"]);
    const rollouts = training.taken().flatMap(({ rows }) => rows);
    const groups = Map.groupBy(rollouts, (id) => id.split("_").slice(0, 3).join("_"));
    const sizes = new Set([...groups.values()].map(({ length }) => length));
    expect(sizes).toEqual(new Set([2, 4]));
  } finally {
    training.stop();
  }
});

test("killed at every point between a lease and its last report, it trains no batch twice and loses none", async ({
  skip,
}) => {
  const { python } = venv ?? skip();
  const steps = 6;
  const training = trainingOf(await smallRun(served, { encoding: "jsonl" }, { max_steps: steps }), "stable");
  try {
    await training.startTrainer(python, steps);
    // After the lease: nothing was written.
    await training.killAt(python, "replied", posts("/trainer/lease"));
    expect(existsSync(training.file(1, 0))).toBe(false);

    // After the rank files: the trainer trains while the bridge is down.
    const release = training.hold(1, "trained");
    await training.startBridge(python);
    await until(() => existsSync(training.file(1, RANKS - 1)), WITHIN_MS);
    await training.kill();
    release();
    await until(() => training.has(1, "STABLE"), WITHIN_MS);

    // After STABLE, before the ack: at step 2, because the registration acknowledges step 1.
    await training.killAt(python, "asked", posts("/ack"));
    expect(training.has(2, "STABLE")).toBe(true);
    // After the ack, whose reply was lost; the registration acknowledged step 2.
    await training.killAt(python, "replied", posts("/ack"));
    expect(training.has(3, "STABLE")).toBe(true);
    // After the registration that reports it, before `published` is reported again.
    await training.killAt(python, "asked", posts("/weight-versions", '"published"'));
    // After published, before applied.
    await training.killAt(python, "asked", posts("/weight-versions", '"version": 4, "state": "applied"'));
    await training.startBridge(python);
    const run = await training.created.ended(served);
    expect([run.status, run.training?.steps_trained]).toEqual(["completed", steps]);
    await until(() => training.said("finished"), WITHIN_MS);
    await expectTrainedOnce(training, steps);
    expect((await trainerOf(served, training.created).weightVersions()).applied.min).toBe(steps);
  } finally {
    training.stop();
  }
});

test("killed at each step of the handshake, it accepts every version after its restart, and trains no batch twice", async ({
  skip,
}) => {
  const { python } = venv ?? skip();
  const steps = 7;
  const training = trainingOf(await smallRun(served, { encoding: "jsonl" }, { max_steps: steps }));
  try {
    await training.startTrainer(python, steps);
    // Before the version that the trainer starts from is accepted: it waits.
    await training.killAt(python, "asked", posts("/trainer/register"));
    expect(training.has(0, ".receiver_ready")).toBe(false);
    // After the lease: nothing was written.
    await training.killAt(python, "replied", posts("/trainer/lease"));
    expect(existsSync(training.file(1, 0))).toBe(false);

    // After the rank files, before the offer: the trainer offers its weights while the bridge is down, and waits.
    const offer = training.hold(1, "trained");
    await training.startBridge(python);
    await until(() => training.has(0, ".finished") && training.said("written", 1), WITHIN_MS);
    await training.kill();
    offer();
    await until(() => training.has(1, ".sender_ready"), WITHIN_MS);
    expect([training.has(1, ".receiver_ready"), training.has(1, ".started")]).toEqual([false, false]);

    // Accepted, but no weights exist yet: the trainer writes them while the bridge is down.
    engine.asked.length = 0;
    const begin = training.hold(2, "accepted");
    await training.startBridge(python);
    await until(() => training.has(2, ".receiver_ready"), WITHIN_MS);
    await training.kill();
    begin();
    await until(() => training.has(2, ".finished"), WITHIN_MS);

    // The weights are incomplete: they are neither acknowledged nor loaded.
    const complete = training.hold(3, "started");
    await training.startBridge(python);
    await until(() => training.has(3, ".started"), WITHIN_MS);
    await training.kill();
    expect(training.said("acked", 3)).toBe(false);
    expect(engine.asked).not.toContain("/update_weights step_3");
    complete();
    await until(() => training.has(3, ".finished"), WITHIN_MS);

    // Complete, before the ack; after the ack; before `published` is reported again; before `applied`.
    await training.killAt(python, "asked", posts("/ack"));
    expect(training.has(4, ".finished")).toBe(true);
    await training.killAt(python, "replied", posts("/ack"));
    await training.killAt(python, "asked", posts("/weight-versions", '"published"'));
    await training.killAt(python, "asked", posts("/weight-versions", '"version": 5, "state": "applied"'));
    await training.startBridge(python);
    const run = await training.created.ended(served);
    expect([run.status, run.training?.steps_trained]).toEqual(["completed", steps]);
    await until(() => training.said("finished"), WITHIN_MS);
    await expectTrainedOnce(training, steps);
    expect((await trainerOf(served, training.created).weightVersions()).applied.min).toBe(steps);
  } finally {
    training.stop();
  }
});

test("a trainer that dies while it offers weights is accepted again, and its batch is acknowledged once", async ({
  skip,
}) => {
  const { python } = venv ?? skip();
  const training = trainingOf(await smallRun(served, { encoding: "jsonl" }));
  try {
    const release = training.hold(2, "started");
    await training.startTrainer(python, 2);
    await training.startBridge(python);
    await until(() => training.has(2, ".started"), WITHIN_MS);
    await training.killTrainer();
    release();
    // It continues from its checkpoint of version 1, and makes that folder again.
    await training.startTrainer(python, 2, 1);
    const run = await training.created.ended(served);
    expect([run.status, run.training?.steps_trained]).toEqual(["completed", 2]);
    expect(training.taken().map(({ step }) => step)).toEqual([1, 2, 2]);
    const acked = training.words.filter(({ bridge }) => bridge === "acked").map(({ step }) => step);
    expect(acked).toEqual([1, 2]);
    const accepted = training.words.filter(({ bridge }) => bridge === "accepted").map(({ version }) => version);
    expect(accepted).toEqual([0, 1, 2, 1, 2]);
  } finally {
    training.stop();
  }
});

test("a trainer that offers a version of another step ends the bridge with a message what to do", async ({ skip }) => {
  const { python } = venv ?? skip();
  const training = trainingOf(await smallRun(served, { encoding: "jsonl" }));
  const ended = async () => {
    const [code] = await once(training.bridge ?? expect.unreachable(), "close");
    return [code, training.words.at(-1)?.["message"]];
  };
  try {
    // It lost a step that was published.
    const release = training.hold(2, "trained");
    await training.startTrainer(python, 2);
    await training.startBridge(python);
    await until(() => training.said("written", 2), WITHIN_MS);
    await training.killTrainer();
    await training.startTrainer(python, 2);
    expect(await ended()).toEqual([
      1,
      expect.stringMatching(/offers version 0, and version 1 was published: .*--reset-to/),
    ]);
    // It continues from a checkpoint of another training.
    await training.killTrainer();
    release();
    await training.startTrainer(python, 9, 5);
    await training.startBridge(python);
    expect(await ended()).toEqual([1, expect.stringMatching(/offers version 5, and this run is at version 1/)]);
    expect([training.has(0, ".receiver_ready"), training.has(5, ".receiver_ready")]).toEqual([false, false]);
  } finally {
    training.stop();
  }
});

test("when it is stopped it ends cleanly, and after a restart it continues with the batch that the trainer has", async ({
  skip,
}) => {
  const { python } = venv ?? skip();
  const training = trainingOf(await smallRun(served, { encoding: "jsonl" }));
  try {
    await training.startTrainer(python, 2);
    const release = training.hold(1, "trained");
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
  const training = trainingOf(await smallRun(served, { encoding: "jsonl" }));
  const flags = ["--reset-to", "0", "--replica", "gpu-1"];
  const applied = (step: number) => writeFileSync(training.broadcast(step, "APPLIED.gpu-1"), "");
  try {
    const release = training.hold(2, "trained");
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
    // One engine serves the last version. The bridge still asks about the other one.
    const isServed = ({ bridge, replica, version }: Record<string, unknown>) =>
      bridge === "applied" && replica === "gpu-0" && version === 2;
    await until(() => training.words.some(isServed), WITHIN_MS);
    let looks = 0;
    const asked = ({ method }: Exchange) => {
      looks += method === "GET" ? 1 : 0;
      return true;
    };
    training.proxy.watcher = { asked };
    await until(() => looks > 2 || training.said("finished"), WITHIN_MS);
    expect(training.said("finished")).toBe(false);
    applied(2);
    expect([run.status, run.training?.steps_trained]).toEqual(["completed", 2]);
    await until(() => training.said("finished"), WITHIN_MS);
    expect(training.taken().map(({ step }) => step)).toEqual([1, 2, 1, 2]);
    const { generation, applied: serving } = await trainerOf(served, training.created).weightVersions();
    expect([generation, serving.by_replica]).toEqual([1, { "gpu-0": 2, "gpu-1": 2 }]);
  } finally {
    training.stop();
  }
});

test("files of another batch, or in another packing, are never overwritten", async ({ skip }) => {
  const { python } = venv ?? skip();
  const training = trainingOf(await smallRun(served, { encoding: "jsonl" }));
  try {
    mkdirSync(dirname(training.file(1, 0)), { recursive: true });
    writeFileSync(training.file(1, 0), "of another training");
    mkdirSync(dirname(training.broadcast(0, ".sender_ready")), { recursive: true });
    writeFileSync(training.broadcast(0, ".sender_ready"), "");
    await training.startBridge(python);
    const [code] = await once(training.bridge ?? expect.unreachable(), "close");
    expect([code, training.said("failed")]).toEqual([1, true]);
    expect(readFileSync(training.file(1, 0), "utf8")).toBe("of another training");
  } finally {
    training.stop();
  }
});

test("its bytes equal those recorded from prime-rl itself", async ({ skip }) => {
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

test("if a rank lacks a micro batch, it and the API make the same dummy, of the requested multiple", async ({
  skip,
}) => {
  const { python } = venv ?? skip();
  const program = `import sys; sys.dont_write_bytecode = True; sys.path.insert(0, sys.argv[1])
from bridge import rank_bytes
print(*[rank_bytes([], 1, 4096, pad_to)[0].hex() for pad_to in map(int, sys.argv[2:])])`;
  const multiples = [1, 2, 3, 8, 64, 4096];
  const { stdout } = await runIn(folder, [python, "-c", program, dirname(BRIDGE), ...multiples.map(String)]);
  const hex = multiples.map((padTo) => {
    const parts = [listHeader(1), ...encodeMicroBatch(dummyOf(padTo))];
    return parts.map((part) => Buffer.from(part).toString("hex")).join("");
  });
  expect(stdout.trim().split(" ")).toEqual(hex);
});

test("--help lists its flags, and a wrong one is refused by name", async ({ skip }) => {
  const { python } = venv ?? skip();
  const help = await runIn(folder, [python, BRIDGE, "--help"]);
  expect([help.code, help.stdout.includes("--seq-len")]).toEqual([0, true]);
  const flags = ["--url", "http://x", "--run", "run_1", "--token", "t", "--output-dir", folder, "--seq-len", "0"];
  const wrong = await runIn(folder, [python, BRIDGE, ...flags]);
  expect([wrong.code, wrong.stderr.includes("--seq-len is at least 2")]).toEqual([2, true]);
});
