/**
 * `npm run bench:training`: what the training loop costs in addition to sampling. Progress goes to stderr, the numbers
 * (or with --json one object) to stdout. The exit code is 0 whatever the numbers.
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { asCommandError, EXIT, type ExitCode } from "../src/cli/exit.ts";
import { printJson } from "../src/cli/terminal/terminal.ts";
import { makeThrowAwayDirectory } from "../src/local/state-directory.ts";
import { ScriptedTrainer } from "../test/fakes/scripted-trainer.ts";
import { deathOf, endGroup, type Served, serve } from "../test/local/served-platform.ts";
import { ReferenceTrainer } from "../test/local/training/reference-trainer.ts";
import {
  type CreatedTraining,
  calculator,
  clientOf,
  createTraining,
  ended,
} from "../test/local/training/training-runs.ts";
import { describeMachine, describeVersions } from "./machine.ts";
import { Meter } from "./measure.ts";

const HELP = `Usage: npm run bench:training -- [flags]

The training loop on calculator with the embedded policy, on a platform of its own. Linux only; about two minutes on
two cores. Rows: an eval and a training run of the same rollouts, with a trainer that learns nothing, for each
encoding; the reference trainer; and what a kill -9 of the trainer, and of the platform, costs until the next step.

      --steps N         of 64 rollouts each; default 20
      --timeout S       give up after this many seconds
      --json            print {machine, versions, rows}
`;

const GROUP_SIZE = 8;
const BATCH_ROLLOUTS = 64;
const PORT = 22_700;

interface Row {
  readonly what: string;
  readonly [number: string]: number | string | null;
}

class Bench {
  readonly #directory = makeThrowAwayDirectory();
  readonly #steps: number;
  #served: Served | null = null;

  constructor(steps: number) {
    this.#steps = steps;
  }

  async rows(): Promise<Row[]> {
    await this.#boot();
    const rows: Row[] = [];
    const measure = async (row: () => Promise<Row>) => {
      rows.push(await row());
      process.stderr.write(`${line(rows.at(-1))}\n`);
    };
    await measure(() => this.#eval());
    await measure(() => this.#scripted("msgpack"));
    await measure(() => this.#scripted("jsonl"));
    await measure(() => this.#reference());
    await measure(() => this.#killed("trainer"));
    await measure(() => this.#killed("platform"));
    return rows;
  }

  async end(): Promise<void> {
    if (this.#served !== null) {
      endGroup(this.#served);
      await deathOf(this.#served.workerd);
    }
    rmSync(this.#directory, { recursive: true, force: true });
  }

  async #boot(): Promise<void> {
    this.#served = await serve(this.#directory, PORT);
  }

  get #platform(): Served {
    if (this.#served === null) throw new Error("the platform is not up");
    return this.#served;
  }

  /** The same rollouts without a trainer: the difference is what training adds. */
  async #eval(): Promise<Row> {
    const { kind: _training, ...play } = calculator(this.#platform.policy);
    const rollouts = this.#steps * BATCH_ROLLOUTS;
    const client = clientOf(this.#platform);
    return await this.#metered("eval", async () => {
      const { id } = await client.runs.create({
        ...play,
        num_examples: rollouts / GROUP_SIZE,
        rollouts_per_example: GROUP_SIZE,
      });
      const { counts } = await ended(client, id);
      return { rollouts: counts.scored };
    });
  }

  async #scripted(encoding: "msgpack" | "jsonl"): Promise<Row> {
    return await this.#metered(`training, ${encoding}`, async () => {
      const created = await this.#create(this.#steps, encoding);
      let [bytes, tokens] = [0, 0];
      const { run, token } = created;
      await new ScriptedTrainer({
        ...{ url: this.#platform.url, run, token, patienceMs: 10_000 },
        train: async ({ manifest }) => {
          bytes += manifest.objects.reduce((sum, object) => sum + object.bytes, 0);
          tokens += manifest.tokens;
        },
      }).work();
      const { counts } = await created.ended(this.#platform);
      return { rollouts: counts.scored, bytes_per_token: rounded(bytes / tokens, 2) };
    });
  }

  async #reference(): Promise<Row> {
    const created = await this.#create(this.#steps, "msgpack");
    const trainer = await this.#trainer(created);
    const row = await this.#metered("reference trainer", async () => {
      const run = await created.ended(this.#platform);
      const { trainer: known, max_lag = null } = { ...run.training };
      return {
        rollouts: run.counts.scored,
        max_lag,
        trainer_waiting_for_batch: known?.waiting_for_batch ?? null,
        trainer_not_training: known?.not_training ?? null,
      };
    });
    await trainer.ends();
    return row;
  }

  /** From the kill to the next acknowledged step; for the platform also from the moment it answers again. */
  async #killed(what: "trainer" | "platform"): Promise<Row> {
    const created = await this.#create(6, "msgpack");
    let trainer = await this.#trainer(created);
    await trainer.says("acked", 3);
    const killedAt = Date.now();
    if (what === "trainer") {
      await trainer.kill();
      trainer = await this.#trainer(created);
      await trainer.next("acked");
    } else {
      const acked = trainer.next("acked");
      process.kill(-this.#platform.group, "SIGKILL");
      await deathOf(this.#platform.workerd);
      await this.#boot();
      await acked;
    }
    const ackedAt = Date.now();
    await created.ended(this.#platform);
    await trainer.ends();
    const { readyAt } = this.#platform;
    return {
      what: `kill -9 of the ${what}`,
      ms_to_next_step: ackedAt - killedAt,
      ...(what === "platform" && { ms_after_boot: Math.max(0, ackedAt - readyAt) }),
    };
  }

  #create(max_steps: number, encoding: "msgpack" | "jsonl"): Promise<CreatedTraining> {
    return createTraining(this.#platform, {
      ...calculator(this.#platform.policy),
      ...{ max_steps, group_size: GROUP_SIZE, batch_size: { rollouts: BATCH_ROLLOUTS } },
      ...{ trainer: { delivery: "pull", encoding }, filters: { zero_variance: "keep" } },
    });
  }

  async #trainer({ run, token }: CreatedTraining): Promise<ReferenceTrainer> {
    const { url, policy } = this.#platform;
    const checkpoint = join(this.#directory, run);
    return new ReferenceTrainer({ url, policy, run, token, checkpoint, learningRate: 0 });
  }

  async #metered(what: string, work: () => Promise<Omit<Row, "what"> & { rollouts: number }>) {
    const { workerd, node } = this.#platform;
    const meter = new Meter({ workerd: workerd.pid, node: node.pid });
    const from = performance.now();
    const done = await work();
    const seconds = (performance.now() - from) / 1000;
    const { cpuSeconds } = meter.stop();
    const perRollout = (name: string) => {
      return rounded(((cpuSeconds[name] ?? 0) * 1000) / done.rollouts, 2);
    };
    return {
      what,
      ...done,
      seconds: rounded(seconds, 1),
      rollouts_per_s: rounded(done.rollouts / seconds, 1),
      workerd_cpu_ms_per_rollout: perRollout("workerd"),
      node_cpu_ms_per_rollout: perRollout("node"),
    };
  }
}

function rounded(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}

function line(row: Row | undefined): string {
  const { what, ...numbers } = { what: "", ...row };
  const named = Object.entries(numbers).map(([name, value]) => `${name} ${value ?? "–"}`);
  return `${what}: ${named.join(", ")}`;
}

const { values } = parseArgs({
  options: {
    help: { type: "boolean", short: "h", default: false },
    steps: { type: "string", default: "20" },
    timeout: { type: "string", default: "600" },
    json: { type: "boolean", default: false },
  },
});

async function main(bench: Bench): Promise<ExitCode> {
  const late = new Promise<never>((_, reject) => {
    const seconds = Number(values.timeout);
    const give = () => reject(new Error(`not done within ${seconds} s`));
    setTimeout(give, seconds * 1000).unref();
  });
  try {
    const machine = describeMachine();
    const rows = await Promise.race([bench.rows(), late]);
    if (values.json) printJson({ machine, versions: describeVersions(), rows });
    else process.stdout.write(`${rows.map(line).join("\n")}\n`);
    return EXIT.good;
  } catch (thrown) {
    const error = asCommandError(thrown);
    process.stderr.write(`bench: ${error.message}\n`);
    if (values.json) printJson({ error: error.failure });
    return error.exit;
  } finally {
    await bench.end();
  }
}

if (values.help) process.stdout.write(HELP);
else process.exit(await main(new Bench(Number(values.steps))));
