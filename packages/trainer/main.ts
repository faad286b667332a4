/**
 * The reference trainer as a process: reads what it is to train, trains it, and says what it does.
 *
 * Invariants. What takes long to compile is compiled before it is told what to train. stdout has events only, stderr is
 * for people, and the last line of a failure says why. Exit code 0: the run is over and its last weights are served, or
 * it was told to stop. 1: it failed. 2: it was called wrongly.
 */
import { createInterface } from "node:readline";
import { TrainerClient } from "../../src/sdk/trainer-client.ts";
import { baseWeights, WEIGHT_COUNT } from "../policy/weights.ts";
import { newAdamState } from "./adam.ts";
import { type Batches, pulledBatches } from "./batches.ts";
import { type Checkpoint, readCheckpoint } from "./checkpoint.ts";
import { Learner } from "./learner.ts";
import { pushedBatches } from "./pushed-batches.ts";
import { HELP, readSettings, type Settings, Task } from "./settings.ts";
import { ThreadedGradient } from "./threaded-gradient.ts";
import { Trainer, type TrainerEvent } from "./trainer.ts";

const TRAINER_ID = "rollcall-reference";

function tell(event: TrainerEvent | { readonly event: "ready" | "finished" }): void {
  console.log(JSON.stringify(event));
}

function say(line: string): void {
  console.error(line);
}

async function main(settings: Settings): Promise<void> {
  const stop = stopSignal();
  // Listened to from the start: a line that nobody reads is lost.
  const asked = settings.run === undefined ? taskFromStdin(stop) : taskFromEnvironment(settings);
  const gradientOf = await ThreadedGradient.start(settings.loss);
  tell({ event: "ready" });
  const task = await asked;
  if (task === null) return;
  const { run_id, batch, state } = (await readCheckpoint(task.checkpoint)) ?? beginning(task);
  if (run_id !== task.run_id) {
    throw new Error(`${task.checkpoint} is a checkpoint of ${run_id}, not of ${task.run_id}`);
  }
  const client = clientOf(settings, task);
  const batches = await batchesOf(settings, task, client);
  const { "learning-rate": learningRate, seed, passes, rewind } = settings;
  const trainer = new Trainer({
    client,
    batches,
    replicas: replicasOf(settings.policy),
    learner: new Learner({ learningRate, seed, passes }, gradientOf),
    directory: task.checkpoint,
    run_id,
    trainer_id: TRAINER_ID,
    from: { batch, state },
    rewind,
    say,
    tell,
    now: Date.now,
  });
  await trainer.run(stop.signal);
  if (!stop.signal.aborted) tell({ event: "finished" });
}

function stopSignal(): AbortController {
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => stop.abort());
  return stop;
}

/** Null when stdin ended, or it was told to stop, before a line came. */
function taskFromStdin(stop: AbortController): Promise<Task | null> {
  const lines = createInterface({ input: process.stdin });
  return new Promise((resolve, reject) => {
    lines.once("line", (line) => {
      try {
        resolve(Task.parse(JSON.parse(line)));
      } catch (error) {
        reject(new Error("the line on stdin names no run", { cause: error }));
      }
    });
    lines.once("close", () => stop.abort());
    stop.signal.addEventListener("abort", () => resolve(null), { once: true });
  });
}

async function taskFromEnvironment({ run, checkpoint }: Settings): Promise<Task> {
  const { ROLLCALL_TRAINER_TOKEN: token, ROLLCALL_PUSH_SECRET: push_secret } = process.env;
  if (checkpoint === undefined) throw new Error("--checkpoint: name a directory for the weights");
  if (token === undefined) throw new Error("set ROLLCALL_TRAINER_TOKEN to the run's trainer token");
  return Task.parse({ run_id: run, token, checkpoint, push_secret });
}

function beginning({ run_id }: Task): Checkpoint {
  const adam = newAdamState(WEIGHT_COUNT);
  return { run_id, batch: null, state: { weights: baseWeights(), adam, version: 0 } };
}

/** A platform that is away is waited for: what was trained is on disk. */
function clientOf({ url }: Settings, { run_id, token }: Task): TrainerClient {
  const maxRetries = Number.POSITIVE_INFINITY;
  return new TrainerClient({ baseUrl: url, runId: run_id, apiKey: token, maxRetries });
}

async function batchesOf(
  { delivery, port }: Settings,
  { push_secret: secret }: Task,
  client: TrainerClient,
): Promise<Batches> {
  if (delivery === "pull") return pulledBatches(client);
  if (secret === undefined) throw new Error("set ROLLCALL_PUSH_SECRET to the run's push secret");
  return pushedBatches({ port, secret, client, now: Date.now });
}

function replicasOf(urls: readonly string[]) {
  return urls.map((url, at) => ({ url, id: urls.length === 1 ? "policy" : `policy-${at}` }));
}

function settingsOrExit(): Settings {
  try {
    const settings = readSettings(process.argv.slice(2));
    if (settings !== null) return settings;
    console.log(HELP);
    process.exit(0);
  } catch (error) {
    say(error instanceof Error ? error.message : String(error));
    process.exit(2);
  }
}

const settings = settingsOrExit();
try {
  await main(settings);
  // Connections that are kept alive, and a stdin that is still open, would keep the process.
  process.exit(0);
} catch (error) {
  say(error instanceof Error ? error.message : String(error));
  process.exit(1);
}
