/**
 * `npm start`: boots the platform, plays a demo training through its public API, and then keeps the platform running.
 * If the training is stopped, it resumes at the next start.
 */
import { KNOWN_ENVIRONMENTS, type KnownEnvironment, knownEnvironment } from "@rollcall/policy/known-environments";
import type { Platform } from "../../local/platform.ts";
import { stateDirectory } from "../../local/state-directory.ts";
import { defined, portOf } from "../argument-values.ts";
import type { CommandLine } from "../command-line.ts";
import { entryLines, printPage, stopSignal, untilStopped } from "../commands/serve.ts";
import { boot, type Connection, clientsOf } from "../connect.ts";
import { CommandError, EXIT, type ExitCode, usageError } from "../exit.ts";
import { catchInterrupts } from "../interrupt.ts";
import type { START_FLAGS } from "../run-flags.ts";
import { type Terminal, terminal } from "../terminal/terminal.ts";
import { evalExamplesOf, learningRateOf, type TrainingSettings } from "./arguments.ts";
import { unfinishedTraining } from "./begin.ts";
import type { Training, TrainingOutcome } from "./play.ts";
import { trainingText } from "./summary.ts";
import { continueTraining, newTraining } from "./train.ts";

type Line = CommandLine<keyof typeof START_FLAGS>;

const DEMO = "calculator";
const NAMES = KNOWN_ENVIRONMENTS.map(({ environment }) => environment).join(", ");

export async function startCommand(line: Line): Promise<ExitCode> {
  line.none();
  const term = terminal(false);
  const known = demoEnvironment(line.text("environment"));
  const settings = line.on("no-demo") ? null : demoSettings(line);
  using interrupt = catchInterrupts();
  const stop = stopSignal(interrupt.signal, line.text("timeout"));
  const platform = await boot({
    directory: stateDirectory(process.env),
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
    const outcome = settings === null ? null : await playDemo(settings, known, platform, term, stop);
    if (line.on("once")) return outcome?.run.status === "completed" ? EXIT.good : EXIT.bad;
    if (!stop.aborted) term.print("Ctrl-C stops it; the next start uses the same data.");
    await untilStopped(platform.lost, stop);
    return EXIT.good;
  } finally {
    await platform.stop();
  }
}

function demoEnvironment(name: string | undefined): KnownEnvironment {
  const known = knownEnvironment(name ?? DEMO);
  if (known !== undefined) return known;
  throw usageError(`--environment: the policy plays ${NAMES}`, "environment");
}

function demoSettings(line: Line): TrainingSettings {
  return {
    draft: defined({ seed: line.count("seed", 0), name: "demo" }),
    training: defined({ max_steps: line.count("max-steps", 1) }),
    learning: { learningRate: learningRateOf(line), passes: undefined, loss: undefined },
    trainer: { kind: "embedded" },
    evalExamples: evalExamplesOf(line),
    dataset: null,
    force: false,
  };
}

function printWhereItIs({ store, directory }: Platform, { print }: Terminal): void {
  if (store.lost) print("The data in memory is lost: this is a fresh start.");
  if (store.memory === null) return;
  print(`State     in memory, ${store.memory}: lost when the machine restarts; --keep moves it to ${directory}`);
}

/** Null if it was stopped before the demo ended. */
async function playDemo(
  settings: TrainingSettings,
  { environment }: KnownEnvironment,
  platform: Platform,
  term: Terminal,
  stop: AbortSignal,
): Promise<TrainingOutcome | null> {
  const connection = connectionTo(platform, environment);
  const { trainer } = settings;
  const training: Training = { connection, term, trainer, ends: { interrupt: stop, timeout: null } };
  try {
    const unfinished = await unfinishedTraining(connection.client, platform.policyUrl);
    const outcome =
      unfinished?.environment.id === environment
        ? await continueTraining(unfinished.id, training)
        : await newTraining(settings, training);
    term.print(`\n${trainingText(outcome, term)}\n`);
    return outcome;
  } catch (error) {
    if (!stop.aborted) throw error;
    if (error instanceof CommandError) term.log(error.message);
    return null;
  }
}

function connectionTo({ url, key, policyUrl, directory, lost }: Platform, name: string): Connection {
  return {
    ...clientsOf(url, key, undefined),
    ...{ url, flags: "", profile: null, project: undefined, policyUrl, directory, lost, kind: "embedded" },
    environment: { reference: name, name, here: null, own: null },
    // The platform keeps running after the demo.
    close: () => Promise.resolve(),
  };
}
