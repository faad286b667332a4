/** `rollcall agent run`: plays rollouts until it is stopped, its run has ended, or there are no more. */
import { hostname } from "node:os";
import { AgentName } from "../../contract/agent.ts";
import type { CommandLine } from "../command-line.ts";
import type { Connection } from "../connect.ts";
import { EXIT, type ExitCode, endBy, unreachable, usageError } from "../exit.ts";
import { followRun } from "../follow.ts";
import { firstOf } from "../interrupt.ts";
import { platformAsked, withConnection } from "../on-platform.ts";
import type { AGENT_RUN_FLAGS } from "../run-flags.ts";
import { countText } from "../terminal/format.ts";
import { printJson, type Terminal, terminal } from "../terminal/terminal.ts";
import { safeLine } from "../terminal/text.ts";
import { programCommand } from "./program-words.ts";
import { type PlayedRollout, playRollouts, type WorkerOptions } from "./worker.ts";

const USUAL_CONCURRENT = 8;
/** The most leases in one request. */
export const MOST_CONCURRENT = 256;
const LONGEST_WORKER = 200;

type Line = CommandLine<keyof typeof AGENT_RUN_FLAGS>;

export async function agentRunCommand(line: Line): Promise<ExitCode> {
  line.none();
  const json = line.on("json");
  const term = terminal(json);
  const tally = new Tally();
  const asked = {
    ...agentOf(line),
    ...programCommand(line.program ?? [], line.text("cwd"), process.cwd()),
    ...{ showOutput: line.on("show-output"), once: line.on("once"), log: term.log },
    onPlayed: (played: PlayedRollout) => {
      tally.add(played);
      if (json) printJson(played);
      else term.print(playedText(played));
    },
  };
  const connect = { ...platformAsked(line), ephemeral: false };
  return await withConnection(connect, term.log, async (connection, ends) => {
    const ended = firstOf(ends);
    await play(connection, asked, line.text("run"), ended, term);
    term.log(tally.text());
    if (ended.aborted) throw endBy(ended, "; the leases were given back");
    return EXIT.good;
  });
}

/** Plays until a signal stops it, the platform is lost, or the run has ended. */
async function play(
  { client, url, lost }: Connection,
  asked: Omit<WorkerOptions, "client">,
  runId: string | undefined,
  ended: AbortSignal,
  { log }: Terminal,
): Promise<void> {
  const [broken, drain] = [new AbortController(), new AbortController()];
  const stop = AbortSignal.any([ended, broken.signal]);
  const fail = (thrown: unknown) => broken.abort(thrown);
  void lost.then((reason) => fail(unreachable("the platform has stopped", reason)));
  if (runId !== undefined) {
    // A wrong id is reported before anything is leased.
    await client.runs.get(runId, { signal: stop });
    const following = followRun(client, runId, { signal: stop, onProgress: () => undefined });
    following.then(() => drain.abort(), fail);
  }
  const many = `${countText(asked.maxConcurrent)} at once`;
  log(`The worker ${asked.worker} plays rollouts of ${asked.name} on ${url}, up to ${many}.`);
  await playRollouts({ ...asked, client }, { stop, drain: drain.signal });
  // With an interruption, following the run has failed too.
  if (broken.signal.aborted && !ended.aborted) throw broken.signal.reason;
  broken.abort();
}

function agentOf(line: Line): Pick<WorkerOptions, "name" | "worker" | "maxConcurrent"> {
  const name = line.text("name");
  if (name === undefined) throw usageError("--name: is required: the name of the agent", "name");
  const worker = line.text("worker") ?? defaultWorker();
  if (worker === "" || worker.length > LONGEST_WORKER) {
    throw usageError(`--worker: must have 1 to ${LONGEST_WORKER} characters`, "worker");
  }
  const maxConcurrent = line.count("max-concurrent", 1) ?? USUAL_CONCURRENT;
  if (maxConcurrent > MOST_CONCURRENT) {
    throw usageError(`--max-concurrent: must be at most ${MOST_CONCURRENT}`, "max-concurrent");
  }
  return { name: agentName(name, "name"), worker, maxConcurrent };
}

/** Throws a usage error that names the flag. */
export function agentName(text: string, flag: string): string {
  const parsed = AgentName.safeParse(text);
  if (parsed.success) return parsed.data;
  throw usageError(`--${flag}: ${text} ${parsed.error.issues[0]?.message}`, flag);
}

export function defaultWorker(): string {
  return `${hostname()}/${process.pid}`.slice(-LONGEST_WORKER);
}

export function playedText({ rollout_id, state, error, seconds }: PlayedRollout): string {
  const why = error === null ? "" : `  ${error.error}: ${safeLine(error.message)}`;
  return `${rollout_id}  ${state}  ${seconds.toFixed(1)} s${why}`;
}

/** How many rollouts were played, by state. */
class Tally {
  readonly #counts = new Map<PlayedRollout["state"], number>();

  add({ state }: PlayedRollout): void {
    this.#counts.set(state, (this.#counts.get(state) ?? 0) + 1);
  }

  text(): string {
    const counts = Array.from(this.#counts, ([state, count]) => `${countText(count)} ${state}`);
    return `Rollouts: ${counts.join(", ") || "none"}`;
  }
}
