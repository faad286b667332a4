/**
 * Runs the reference trainer as a process: reads its task, trains, and reports events.
 *
 * Invariants: everything slow is compiled before the task is read. stdout has events only, stderr is for people, and
 * the last line of a failure gives its reason. Exit code 0: the run is over and its last weights are served, or the
 * trainer was stopped. 1: it failed. 2: its flags were wrong. The token and the secret are never flags, because other
 * processes can see those.
 */
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { baseWeights, WEIGHT_COUNT } from "@rollcall/policy/weights";
import { TrainerClient } from "rollcall/sdk/trainer";
import * as z from "zod";
import { newAdamState } from "./adam.ts";
import { type Batches, leaseBatches, receiveBatches } from "./batches.ts";
import { type Checkpoint, readCheckpoint } from "./checkpoint.ts";
import { Learner } from "./learner.ts";
import { LOSS_NAMES, type LossName } from "./losses.ts";
import { ThreadedGradient } from "./threaded-gradient.ts";
import { Trainer, type TrainerEvent } from "./trainer.ts";
import { MOST_PASSES } from "./trainer-process.ts";

const HELP = `Usage: node packages/trainer/main.ts --url URL --policy URL [flags]

Trains the embedded policy on the batches of one run, by the contract in docs/training.md. Which run: --run with its
token in ROLLCALL_TRAINER_TOKEN; or, without --run, one line of JSON on stdin, {"run_id","token","checkpoint"}, and the end
of stdin stops it. Events are lines of JSON on stdout. Interrupted, it ends the step it is in; started again with the same
checkpoint, it goes on.

      --url URL             of the platform, without /v1
      --policy URL          of an engine that serves the policy; may be repeated
      --run ID              the run to train
      --checkpoint DIR      where weights are kept, and taken from
      --delivery pull|push  default pull; push needs the secret in ROLLCALL_PUSH_SECRET
      --port N              that offers are pushed to; default 8790
      --learning-rate L     default 5e-4; 0 changes nothing, as a control
      --passes N            how often each batch is trained on, 1 to ${MOST_PASSES}; default 1
      --loss NAME           ${LOSS_NAMES.join(", ")}; default dppo
      --seed S              of the order in which samples are taken; default 0
      --rewind              gives up every version after the checkpoint's
`;

const Settings = z.object({
  url: z.url(),
  policy: z.array(z.url()).min(1),
  run: z.string().min(1).optional(),
  checkpoint: z.string().min(1).optional(),
  delivery: z.enum(["pull", "push"]).default("pull"),
  port: z.coerce.number().int().min(1).max(65_535).default(8790),
  "learning-rate": z.coerce.number().min(0).max(1).default(5e-4),
  passes: z.coerce.number().int().min(1).max(MOST_PASSES).default(1),
  loss: z.custom<LossName>((name) => LOSS_NAMES.some((known) => known === name)).default("dppo"),
  seed: z.coerce.number().int().min(0).default(0),
  rewind: z.boolean().default(false),
});
type Settings = z.output<typeof Settings>;

/** The run to train. */
const Task = z.object({
  run_id: z.string().min(1),
  token: z.string().min(1),
  checkpoint: z.string().min(1),
  push_secret: z.string().min(1).optional(),
});
type Task = z.infer<typeof Task>;

/** Null if --help was given. Throws an Error that names the wrong flag. */
function readSettings(): Settings | null {
  const text = { type: "string" } as const;
  const { values } = parseArgs({
    options: {
      url: text,
      policy: { type: "string", multiple: true },
      run: text,
      checkpoint: text,
      delivery: text,
      port: text,
      "learning-rate": text,
      passes: text,
      loss: text,
      seed: text,
      rewind: { type: "boolean" },
      help: { type: "boolean", short: "h" },
    },
  });
  if (values.help) return null;
  const read = Settings.safeParse(values);
  if (read.success) return read.data;
  const [first] = read.error.issues;
  throw new Error(`--${first?.path.join(".")}: ${first?.message}; --help tells more`);
}

async function main(settings: Settings): Promise<void> {
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => stop.abort());
  // Listens from the start, because a line that comes before is lost.
  const asked = settings.run === undefined ? readTask(stop) : taskFromEnvironment(settings);
  const gradientOf = await ThreadedGradient.start(settings.loss);
  tell({ event: "ready" });
  const task = await asked;
  if (task === null) return;
  const { run_id, batch, state } = (await readCheckpoint(task.checkpoint)) ?? firstCheckpoint(task);
  if (run_id !== task.run_id) {
    throw new Error(`${task.checkpoint} is a checkpoint of ${run_id}, not of ${task.run_id}`);
  }
  const { url, policy, "learning-rate": learningRate, seed, passes, rewind } = settings;
  // An unreachable platform is waited for: the trained state is on disk.
  const maxRetries = Number.POSITIVE_INFINITY;
  const client = new TrainerClient({ baseUrl: url, runId: run_id, apiKey: task.token, maxRetries });
  const trainer = new Trainer({
    client,
    batches: await openBatches(settings, task, client),
    replicas: policy.map((address, at) => ({ url: address, id: policy.length === 1 ? "policy" : `policy-${at}` })),
    learner: new Learner({ learningRate, seed, passes }, gradientOf),
    directory: task.checkpoint,
    run_id,
    trainer_id: "rollcall-reference",
    from: { batch, state },
    rewind,
    log: console.error,
    tell,
    now: Date.now,
  });
  await trainer.run(stop.signal);
  if (!stop.signal.aborted) tell({ event: "finished" });
}

function tell(event: TrainerEvent | { readonly event: "ready" | "finished" }): void {
  console.log(JSON.stringify(event));
}

/** Reads the task from stdin. Null if stdin ended, or the trainer was stopped, before a line came. */
function readTask(stop: AbortController): Promise<Task | null> {
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

function firstCheckpoint({ run_id }: Task): Checkpoint {
  const adam = newAdamState(WEIGHT_COUNT);
  return { run_id, batch: null, state: { weights: baseWeights(), adam, version: 0 } };
}

async function openBatches(
  { delivery, port }: Settings,
  { push_secret: secret }: Task,
  client: TrainerClient,
): Promise<Batches> {
  if (delivery === "pull") return leaseBatches(client);
  if (secret === undefined) throw new Error("set ROLLCALL_PUSH_SECRET to the run's push secret");
  return receiveBatches({ port, secret, client, now: Date.now });
}

function exitWith(code: 1 | 2, error: unknown): never {
  console.error(error instanceof Error ? error.message : String(error));
  process.exit(code);
}

function readSettingsOrExit(): Settings | null {
  try {
    return readSettings();
  } catch (error) {
    return exitWith(2, error);
  }
}

const settings = readSettingsOrExit();
if (settings === null) console.log(HELP);
else await main(settings).catch((error: unknown) => exitWith(1, error));
// Keep-alive connections, and an open stdin, would keep the process running.
process.exit(0);
