/** `rollcall run pause | resume | update | retry`: each prints the run as it then stands. */
import type { RunView } from "../../contract/run.ts";
import { RetryRequest, type RunPatch } from "../../contract/run-control.ts";
import type { CallOptions, RollcallClient } from "../../sdk/client.ts";
import { type CommandLine, readCommandLine } from "../command-line.ts";
import { EXIT, type ExitCode, usageError } from "../exit.ts";
import { onPlatform } from "../on-platform.ts";
import { countText } from "../terminal/format.ts";
import { RUN_PAUSE, RUN_RESUME, RUN_RETRY, RUN_UPDATE } from "./control-specs.ts";

export function runPauseCommand(argv: readonly string[]): Promise<ExitCode> {
  const line = readCommandLine(RUN_PAUSE, argv);
  return change(line, (client, id, options) => client.pauseRun(id, options));
}

export function runResumeCommand(argv: readonly string[]): Promise<ExitCode> {
  const line = readCommandLine(RUN_RESUME, argv);
  return change(line, (client, id, options) => client.resumeRun(id, options));
}

export function runUpdateCommand(argv: readonly string[]): Promise<ExitCode> {
  const line = readCommandLine(RUN_UPDATE, argv);
  const max_concurrent = line.count("max-concurrent", 1);
  const name = line.text("name");
  const metadata = line.all("metadata").length === 0 ? undefined : line.pairs("metadata");
  const patch: RunPatch = {
    ...(max_concurrent !== undefined && { max_concurrent }),
    ...(name !== undefined && { name }),
    ...(metadata && { metadata }),
  };
  if (Object.keys(patch).length === 0) throw usageError("name what is to change: see --help");
  return change(line, (client, id, options) => client.updateRun(id, patch, options));
}

export function runRetryCommand(argv: readonly string[]): Promise<ExitCode> {
  const line = readCommandLine(RUN_RETRY, argv);
  const classes = line.all("class");
  const request = RetryRequest.parse(classes.length === 0 ? {} : { classes });
  return change(line, (client, id, options) => client.retryRun(id, request, options));
}

function change(
  line: CommandLine<"json" | "platform" | "timeout">,
  ask: (client: RollcallClient, id: string, options: CallOptions) => Promise<RunView>,
): Promise<ExitCode> {
  const id = line.one("a run");
  return onPlatform(line, async ({ client, signal, answer }) => {
    const run = await ask(client, id, { signal });
    answer(run, () => standing(run));
    return EXIT.good;
  });
}

/** "run_…: paused, 3 in flight, 20 to come, 8 at once". */
function standing({ id, status, counts, max_concurrent }: RunView): string {
  const { in_flight, pending } = counts;
  const ahead = `${countText(in_flight)} in flight, ${countText(pending)} to come`;
  return `${id}: ${status}, ${ahead}, ${countText(max_concurrent)} at once`;
}
