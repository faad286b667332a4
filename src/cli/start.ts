/** `npm start`: the platform, a demo eval through its public API, a table, and then it stays up. */
import type { RunView } from "../core/run.ts";
import type { Platform } from "../local/platform.ts";
import {
  KNOWN_ENVIRONMENTS,
  type KnownEnvironment,
  knownEnvironment,
  POLICY_MODEL,
} from "../local/policy/known-environments.ts";
import { stateDirectory } from "../local/state-directory.ts";
import { RollcallClient } from "../sdk/client.ts";
import { boot } from "./boot.ts";
import { readCommandLine } from "./command-line.ts";
import { START } from "./commands.ts";
import { Display } from "./display.ts";
import { EXIT, type ExitCode, unreachable, usageError } from "./exit.ts";
import { followRun } from "./follow.ts";
import { catchInterrupts } from "./interrupt.ts";
import { doors, portOf, stopSignal, untilStopped } from "./serve.ts";
import { resultsTable } from "./table.ts";
import { type Terminal, terminal } from "./terminal.ts";

const NAMES = KNOWN_ENVIRONMENTS.map(({ environment }) => environment).join(", ");

const DEMO_EXAMPLES = 40;
const DEMO_ROLLOUTS_PER_EXAMPLE = 2;

export async function startCommand(argv: readonly string[]): Promise<ExitCode> {
  const line = readCommandLine(START, argv);
  line.none();
  const term = terminal(false);
  const environments = line.on("no-demo") ? [] : demoEnvironments(line.text("environment"));
  using interrupt = catchInterrupts();
  const stop = stopSignal(interrupt.signal, line.text("timeout"));
  const directory = stateDirectory(process.env);
  const platform = await boot({ directory, port: portOf(line.text("port")), say: term.say });
  try {
    term.print(doors(platform.url, platform.key));
    const runs = await playDemo(platform, environments, term, stop);
    const good = runs.every((run) => run.status === "completed");
    if (line.on("once")) return good ? EXIT.good : EXIT.bad;
    if (!stop.aborted) term.print("Ctrl-C stops it; starting again goes on with the same data.");
    await untilStopped(platform.lost, stop);
    return EXIT.good;
  } finally {
    await platform.stop();
  }
}

function demoEnvironments(only: string | undefined): readonly KnownEnvironment[] {
  if (only === undefined) return KNOWN_ENVIRONMENTS;
  const known = knownEnvironment(only);
  if (known !== undefined) return [known];
  throw usageError(`--environment: the policy plays ${NAMES}`, "environment");
}

/** The ended runs; none when it was told to stop before they ended. They go on at the next start. */
async function playDemo(
  platform: Platform,
  environments: readonly KnownEnvironment[],
  term: Terminal,
  signal: AbortSignal,
): Promise<RunView[]> {
  if (environments.length === 0 || signal.aborted) return [];
  const client = new RollcallClient({ baseUrl: platform.url, apiKey: platform.key });
  const display = new Display(term, () => performance.now());
  const play = async (known: KnownEnvironment) => {
    const run = await client.createRun({
      name: "demo",
      ...known,
      model: POLICY_MODEL,
      endpoint: { base_url: platform.policyUrl },
      num_examples: DEMO_EXAMPLES,
      rollouts_per_example: DEMO_ROLLOUTS_PER_EXAMPLE,
    });
    return followRun(client, run.id, { signal, onProgress: (it) => display.show(it) });
  };
  const lost = platform.lost.then((reason): never => {
    throw unreachable("the platform is gone", reason);
  });
  try {
    const runs = await Promise.race([Promise.all(environments.map(play)), lost]);
    term.print(`\n${resultsTable(runs, term.room)}\n`);
    return runs;
  } catch (error) {
    if (signal.aborted) return [];
    throw error;
  }
}
