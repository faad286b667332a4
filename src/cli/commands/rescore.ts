/** `rollcall rescore`: scores what an ended run left behind, in a run of its own, and says how that went. */
import type { RescoreRequestInput } from "../../contract/run-control.ts";
import { defined, environmentArgs, judgeTargets } from "../argument-values.ts";
import { type CommandLine, readCommandLine } from "../command-line.ts";
import { connect } from "../connect.ts";
import { playedRun } from "../eval/played-run.ts";
import { evalSummary } from "../eval/summary.ts";
import { EXIT, type ExitCode } from "../exit.ts";
import { catchInterrupts, firstOf } from "../interrupt.ts";

import { RewardTally, resultsText } from "../terminal/results.ts";
import { printJson, terminal } from "../terminal/terminal.ts";
import { RESCORE } from "./control-specs.ts";

export async function rescoreCommand(argv: readonly string[]): Promise<ExitCode> {
  const line = readCommandLine(RESCORE, argv);
  const source = line.one("a run");
  const term = terminal(line.on("json"));
  const timeoutMs = line.timeoutMs("timeout");
  const request = rescoreRequest(line);
  using interrupt = catchInterrupts();
  const timeout = timeoutMs === null ? null : AbortSignal.timeout(timeoutMs);
  const connection = await connect({
    platform: line.text("platform"),
    ephemeral: false,
    environment: line.text("environment"),
    signal: firstOf(interrupt.signal, timeout),
    say: term.say,
  });
  try {
    const started = performance.now();
    const named = defined({ environment: connection.environment?.name });
    const { signal } = interrupt;
    const run = await connection.client.rescoreRun(source, { ...request, ...named }, { signal });
    term.say(`Run ${run.id} scores what ${source} left behind, on ${connection.url}`);
    const tally = new RewardTally();
    const ends = { interrupt: signal, timeout, again: "rollcall eval" };
    const ended = await playedRun(run, connection, term, tally, ends);
    term.print(resultsText([{ run: ended, tally }], term));
    const { rescored_from } = ended;
    const seconds = (performance.now() - started) / 1000;
    if (line.on("json")) printJson({ ...evalSummary(ended, seconds, null), rescored_from });
    return ended.status === "completed" ? EXIT.good : EXIT.bad;
  } finally {
    await connection.close();
  }
}

function rescoreRequest(line: CommandLine<keyof typeof RESCORE.flags>): RescoreRequestInput {
  const args = environmentArgs(line.all("env-args"));
  const judges = judgeTargets(line.all("judge"));
  const metadata = line.pairs("metadata");
  return {
    ...(Object.keys(args).length > 0 && { environment_args: args }),
    ...(Object.keys(judges).length > 0 && { judges }),
    ...(Object.keys(metadata).length > 0 && { metadata }),
    ...defined({ name: line.text("name"), min_scored: line.number("min-scored") }),
  };
}
