/**
 * `npm start`: boots the platform, plays a demo training through its public API, and then keeps the platform running.
 * If the training is stopped, it resumes at the next start; if it was completed, its weights are served.
 */
import { KNOWN_ENVIRONMENTS, knownEnvironment } from "@rollcall/policy/known-environments";
import { serveWeights } from "@rollcall/policy/policy-server";
import { bytesFromWeights } from "@rollcall/policy/weights";
import { readCheckpoint } from "@rollcall/trainer/checkpoint";
import type { RunView } from "../../contract/run.ts";
import { COMMAND } from "../../local/package-root.ts";
import type { Platform } from "../../local/platform.ts";
import { stateDirectory } from "../../local/state-directory.ts";
import type { RollcallClient } from "../../sdk/client.ts";
import { defined, portOf } from "../argument-values.ts";
import type { CommandLine } from "../command-line.ts";
import { entryLines, printPage, stopSignal, untilStopped } from "../commands/serve.ts";
import { boot, type Connection, clientsOf, type NamedEnvironment, nameEnvironment } from "../connect.ts";
import { checkBeforeBoot } from "../eval/before-boot.ts";
import { CommandError, EXIT, type ExitCode, usageError } from "../exit.ts";
import { catchInterrupts } from "../interrupt.ts";
import type { START_FLAGS } from "../run-flags.ts";
import { type Terminal, terminal } from "../terminal/terminal.ts";
import { evalExamplesOf, learningRateOf, type TrainingSettings } from "./arguments.ts";
import { checkpointOf, unfinishedTraining } from "./begin.ts";
import type { Training } from "./play.ts";
import { trainingText } from "./summary.ts";
import { continueTraining, newTraining } from "./train.ts";

type Line = CommandLine<keyof typeof START_FLAGS>;

const DEMO = "calculator";
const RUN_NAME = "demo";
const NAMES = KNOWN_ENVIRONMENTS.map(({ environment }) => environment).join(", ");

export async function startCommand(line: Line): Promise<ExitCode> {
  line.none();
  const term = terminal(false);
  const named = demoEnvironment(line.text("environment"));
  const settings = line.on("no-demo") ? null : demoSettings(line);
  using interrupt = catchInterrupts();
  const stop = stopSignal(interrupt.signal, line.text("timeout"));
  const { own } = named;
  if (own !== null && settings !== null) {
    const { draft, force } = settings;
    await checkBeforeBoot({ draft, force, hasDataset: false, policyOnly: true }, named, [], interrupt.signal);
  }
  const platform = await boot({
    directory: stateDirectory(process.env),
    environments: own === null ? [] : [own],
    store: line.on("keep") ? "disk" : "memory",
    port: portOf(line.text("port")),
    signal: interrupt.signal,
    // Ctrl-C on a terminal also reaches workerd; reporting its restart would only confuse.
    log: (said) => {
      if (!interrupt.signal.aborted) term.log(said);
    },
  });
  try {
    term.print(entryLines(platform.url, platform.key));
    await printPage(term.print, clientsOf(platform.url, platform.key, undefined).client, "/");
    printWhereItIs(platform, term);
    const run = settings === null ? null : await demoRun(settings, named, platform, term, stop, line.on("again"));
    if (line.on("once")) return run?.status === "completed" ? EXIT.good : EXIT.bad;
    if (!stop.aborted) term.print("Ctrl-C stops it; the next start uses the same data.");
    await untilStopped(platform.lost, stop);
    return EXIT.good;
  } finally {
    await platform.stop();
  }
}

/** One that the bundled policy plays, or a folder or an installed package, which it tries to learn. */
function demoEnvironment(reference: string = DEMO): NamedEnvironment {
  const named = nameEnvironment(reference, process.cwd());
  if (named.own !== null || knownEnvironment(named.name) !== undefined) return named;
  throw usageError(`--environment: the policy plays ${NAMES}, or your own environment by its folder`, "environment");
}

function demoSettings(line: Line): TrainingSettings {
  return {
    draft: defined({ seed: line.count("seed", 0), name: RUN_NAME }),
    training: defined({ max_steps: line.count("max-steps", 1) }),
    learning: { learningRate: learningRateOf(line), passes: undefined, loss: undefined },
    trainer: { kind: "embedded" },
    evalExamples: evalExamplesOf(line),
    dataset: null,
    force: true,
  };
}

function printWhereItIs({ store, directory }: Platform, { print }: Terminal): void {
  if (store.lost) print("The data in memory is lost: this is a fresh start.");
  if (store.memory === null) return;
  print(`State     in memory, ${store.memory}: lost when the machine restarts; --keep moves it to ${directory}`);
}

/** The demo's run, played now or before; null if it was stopped before its end. */
async function demoRun(
  settings: TrainingSettings,
  named: NamedEnvironment,
  platform: Platform,
  term: Terminal,
  stop: AbortSignal,
  again: boolean,
): Promise<RunView | null> {
  const connection = connectionTo(platform, named);
  const environment = named.name;
  const { trainer } = settings;
  const ends = { interrupt: stop, timeout: null };
  const training: Training = { connection, term, trainer, ends, again: `${COMMAND} train` };
  try {
    const unfinished = await unfinishedTraining(connection.client, platform.policyUrl);
    const before = again || unfinished !== null ? null : await completedDemo(connection.client, environment);
    if (before !== null) {
      await serveTrained(before, connection, platform.policyUrl, term);
      return before;
    }
    const outcome =
      unfinished?.environment.id === environment
        ? await continueTraining(unfinished.id, training)
        : await newTraining(settings, training);
    term.print(`\n${trainingText(outcome, term)}\n`);
    return outcome.run;
  } catch (error) {
    if (!stop.aborted) throw error;
    if (error instanceof CommandError) term.log(error.message);
    return null;
  }
}

/** The latest one, of the latest runs. */
async function completedDemo(client: RollcallClient, environment: string): Promise<RunView | null> {
  const { data } = await client.runs.list({ kind: "training", status: "completed", environment });
  return data.find(({ name }) => name === RUN_NAME) ?? null;
}

async function serveTrained(
  run: RunView,
  connection: Connection,
  policyUrl: string,
  { print }: Terminal,
): Promise<void> {
  const trained = await readCheckpoint(checkpointOf(connection, run.id));
  print(`Trained   ${run.environment.id} before, in ${run.id}: npm start -- --again trains anew`);
  if (trained === null) return;
  const { version, weights } = trained.state;
  await serveWeights(policyUrl, String(version), bytesFromWeights(weights));
  print(`Policy    ${policyUrl} serves version ${version} of it`);
}

function connectionTo({ url, key, policyUrl, directory, lost }: Platform, environment: NamedEnvironment): Connection {
  return {
    ...clientsOf(url, key, undefined),
    ...{ url, flags: "", profile: null, project: undefined, policyUrl, directory, lost, kind: "embedded" },
    environment,
    // The platform keeps running after the demo.
    close: () => Promise.resolve(),
  };
}
