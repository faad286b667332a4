/** The agent of `rollcall eval`: the settings in the request, and a worker in this process if the agent is a program. */
import type { EvalRequestInput } from "../../contract/eval-request.ts";
import type { RunView } from "../../contract/run.ts";
import { type ProgramCommand, programCommand } from "../agent/program-words.ts";
import { agentName, defaultWorker, MOST_CONCURRENT, playedText } from "../agent/run.ts";
import { type PlayedRollout, playRollouts } from "../agent/worker.ts";
import { defined } from "../argument-values.ts";
import type { CommandLine } from "../command-line.ts";
import type { Connection } from "../connect.ts";
import { usageError } from "../exit.ts";
import type { EVAL_FLAGS } from "../run-flags.ts";
import type { Terminal } from "../terminal/terminal.ts";

/** Programs at the same time, unless `--max-concurrent` says otherwise. */
const USUAL_CONCURRENT = 8;
/** Further failures are counted with the run. */
const FAILURES_SHOWN = 10;

/** A program that plays the rollouts of the run. */
export interface AgentProgram extends ProgramCommand {
  /** The name of the agent. */
  readonly name: string;
  readonly maxConcurrent: number;
  /** The program as it was given, after ` -- `. */
  readonly again: string;
}

export interface AgentArguments {
  /** Of the request; undefined if the environment plays itself. */
  readonly agent: EvalRequestInput["agent"];
  readonly program: AgentProgram | null;
}

/** Flags override the agent of `--file`. A program without a name gets one of its own, so that it plays only this run. */
export function agentArguments(
  line: CommandLine<keyof typeof EVAL_FLAGS>,
  draft: Partial<EvalRequestInput>,
): AgentArguments {
  const named = line.text("agent");
  const given = defined({
    name: named === undefined ? undefined : agentName(named, "agent"),
    sampling: (["keep", "override"] as const).find((one) => one === line.text("agent-sampling")),
    max_turns: line.count("max-turns", 1),
  });
  const asked = { ...draft.agent, ...given };
  const words = line.program;
  if (words === null) {
    // The platform names what is wrong with the agent of a file.
    if (Object.keys(given).length === 0) return { agent: draft.agent, program: null };
    if (asked.name !== undefined) return { agent: { ...asked, name: asked.name }, program: null };
    const flag = given.sampling === undefined ? "max-turns" : "agent-sampling";
    throw usageError(`--${flag}: needs --agent, or a program after --`, flag);
  }
  const command = programCommand(words, undefined, process.cwd());
  if (asked.name === undefined && line.text("resume") !== undefined) {
    throw usageError("--agent: is required to resume a run with a program: the name of its agent", "agent");
  }
  const name = asked.name ?? `eval-${crypto.randomUUID().slice(0, 8)}`;
  const maxConcurrent = Math.min(draft.max_concurrent ?? USUAL_CONCURRENT, MOST_CONCURRENT);
  const program = { ...command, name, maxConcurrent, again: line.programAsGiven() };
  return { agent: { ...asked, name }, program };
}

/**
 * Plays the run with the program while `follow` follows it. If the worker fails, for example because the program cannot
 * be started, the run is cancelled, and the error is thrown.
 */
export async function playedByProgram<T>(
  { again: _, ...program }: AgentProgram,
  run: RunView,
  { client }: Pick<Connection, "client">,
  { log }: Terminal,
  follow: () => Promise<T>,
): Promise<T> {
  const over = new AbortController();
  const failures = new Failures(log);
  const worker = playRollouts(
    {
      ...{ ...program, client, worker: defaultWorker(), log, showOutput: false, once: false },
      onPlayed: (played) => failures.add(played),
    },
    { stop: over.signal, drain: over.signal },
  );
  const broken = Promise.withResolvers<never>();
  worker.catch(async (thrown: unknown) => {
    await client.runs
      .cancel(run.id)
      .catch((error: unknown) => log(`${run.id} could not be cancelled: ${String(error)}`));
    broken.reject(thrown);
  });
  try {
    return await Promise.race([follow(), broken.promise]);
  } finally {
    over.abort();
    await Promise.allSettled([worker]);
  }
}

/** Logs the first failures, so that the user sees why the program fails. */
class Failures {
  readonly #log: (line: string) => void;
  #count = 0;

  constructor(log: (line: string) => void) {
    this.#log = log;
  }

  add(played: PlayedRollout): void {
    if (played.state !== "failed") return;
    this.#count += 1;
    if (this.#count <= FAILURES_SHOWN) this.#log(playedText(played));
    if (this.#count === FAILURES_SHOWN) this.#log("Further failures are not shown.");
  }
}
