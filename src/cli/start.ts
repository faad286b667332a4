/** `npm start`: the platform, a demo eval through its public API, a table, and then it stays up. */
import { parseArgs } from "node:util";
import type { RunView } from "../core/run.ts";
import { DEMO_ENVIRONMENTS, DEMO_MODEL } from "../local/demo-model.ts";
import type { Platform } from "../local/platform.ts";
import { stateDirectory } from "../local/state-directory.ts";
import { RollcallClient } from "../sdk/client.ts";
import { boot } from "./boot.ts";
import { Display } from "./display.ts";
import { EXIT, type ExitCode, unreachable, usageError } from "./exit.ts";
import { followRun } from "./follow.ts";
import { catchInterrupts } from "./interrupt.ts";
import { doors, portOf, stopSignal, untilStopped } from "./serve.ts";
import { resultsTable } from "./table.ts";
import { type Terminal, terminal } from "./terminal.ts";

const HELP = `Usage: npm start -- [flags]

Runs the platform and a demo eval on it (${DEMO_ENVIRONMENTS.join(" and ")}, played by a scripted model), prints the
results, and stays up until ctrl-C. Starting again goes on with the same data.

      --once               stop after the table
      --environment E      the demo on this environment only
      --no-demo            no demo
      --port P             default 8787; a busy port moves to the next free one
      --timeout S          stop after this many seconds
`;

const DEMO_EXAMPLES = 40;
const DEMO_ROLLOUTS_PER_EXAMPLE = 2;

export async function startCommand(argv: readonly string[]): Promise<ExitCode> {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      help: { type: "boolean", short: "h" },
      once: { type: "boolean", default: false },
      environment: { type: "string" },
      "no-demo": { type: "boolean", default: false },
      port: { type: "string" },
      timeout: { type: "string" },
    },
  });
  const term = terminal(false);
  if (values.help) {
    term.print(HELP);
    return EXIT.good;
  }
  const environments = values["no-demo"] ? [] : demoEnvironments(values.environment);
  using interrupt = catchInterrupts();
  const stop = stopSignal(interrupt.signal, values.timeout);
  const directory = stateDirectory(process.env);
  const platform = await boot({ directory, port: portOf(values.port), say: term.say });
  try {
    term.print(doors(platform.url, platform.key));
    const runs = await playDemo(platform, environments, term, stop);
    const good = runs.every((run) => run.status === "completed");
    if (values.once) return good ? EXIT.good : EXIT.bad;
    if (!stop.aborted) term.print("Ctrl-C stops it; starting again goes on with the same data.");
    await untilStopped(platform.lost, stop);
    return EXIT.good;
  } finally {
    await platform.stop();
  }
}

function demoEnvironments(only: string | undefined): readonly string[] {
  if (only === undefined) return DEMO_ENVIRONMENTS;
  if (DEMO_ENVIRONMENTS.includes(only)) return [only];
  const known = DEMO_ENVIRONMENTS.join(", ");
  throw usageError(`--environment: the demo model plays ${known}`, "environment");
}

/** The ended runs; none when it was told to stop before they ended. They go on at the next start. */
async function playDemo(
  platform: Platform,
  environments: readonly string[],
  term: Terminal,
  signal: AbortSignal,
): Promise<RunView[]> {
  if (environments.length === 0 || signal.aborted) return [];
  const client = new RollcallClient({ baseUrl: platform.url, apiKey: platform.key });
  const display = new Display(term, () => performance.now());
  const play = async (environment: string) => {
    const run = await client.createRun({
      name: "demo",
      environment,
      model: DEMO_MODEL,
      endpoint: { base_url: platform.demoModelUrl },
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
    term.print(`\n${resultsTable(runs)}\n`);
    return runs;
  } catch (error) {
    if (signal.aborted) return [];
    throw error;
  }
}
