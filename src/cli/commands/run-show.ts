/** `rollcall run show` and `rollcall run cancel`: one run, read or ended early. */
import type { RunView } from "../../contract/run.ts";
import { readCommandLine } from "../command-line.ts";
import { RUN_CANCEL, RUN_SHOW } from "../commands.ts";
import { EXIT, type ExitCode } from "../exit.ts";
import { hasEnded } from "../follow.ts";
import { onPlatform } from "../on-platform.ts";
import { countText, namedCounts, sum, timeText } from "../terminal/format.ts";
import { resultsTable } from "../terminal/results.ts";
import { details } from "../terminal/table.ts";
import { safeLine } from "../terminal/text.ts";
import { trainingFields } from "../train/summary.ts";

export function runShowCommand(argv: readonly string[]): Promise<ExitCode> {
  const line = readCommandLine(RUN_SHOW, argv);
  const id = line.one("a run");
  return onPlatform(line, async ({ client, signal, term, answer }) => {
    const run = await client.getRun(id, { signal });
    answer(run, () => runText(run, term.room));
    return EXIT.good;
  });
}

export function runCancelCommand(argv: readonly string[]): Promise<ExitCode> {
  const line = readCommandLine(RUN_CANCEL, argv);
  const id = line.one("a run");
  return onPlatform(line, async ({ client, signal, answer }) => {
    const run = await client.cancelRun(id, { signal });
    answer(run, () => cancelText(run));
    return EXIT.good;
  });
}

function cancelText(run: RunView): string {
  if (hasEnded(run)) return `${run.id}: ${run.status}`;
  return `${run.id}: cancelling ${countText(run.counts.in_flight)} rollouts in flight`;
}

function runText(run: RunView, room: number): string {
  const { counts, environment, endpoint, judges } = run;
  const where = endpoint.name === null ? endpoint.base_url : `${endpoint.name}, ${endpoint.base_url}`;
  const fields = {
    run: run.id,
    name: run.name,
    status: run.error === null ? run.status : `${run.status}: ${run.error.message}`,
    flow: run.flow === null ? null : [run.flow.state, run.flow.reason].filter(Boolean).join(": "),
    environment: `${environment.id}@${environment.version} ${jsonOrNothing(run.environment_args)}`,
    dataset: run.dataset,
    model: `${run.model} at ${where}`,
    judges: jsonOrNothing(judges) || null,
    sampling: jsonOrNothing(run.sampling) || null,
    tasks: tasksText(run),
    ...(run.training && trainingFields(run.training)),
    counts: namedCounts({
      pending: counts.pending,
      "in flight": counts.in_flight,
      scored: counts.scored,
      unscored: sum(counts.unscored),
      failed: sum(counts.failed),
      cancelled: sum(counts.cancelled),
    }),
    "max concurrent": countText(run.max_concurrent),
    limits: jsonOrNothing(run.limits),
    "forked from": forkText(run),
    "dead letters": run.dead_letters === 0 ? null : countText(run.dead_letters),
    metadata: jsonOrNothing(run.metadata) || null,
    created: timeText(run.created_at),
    finished: run.finished_at === null ? null : timeText(run.finished_at),
  };
  const lines = Object.entries(fields).map(([name, value]) => {
    return [name, value === null ? null : safeLine(value)] as const;
  });
  return `${details(Object.fromEntries(lines))}\n\n${resultsTable([run], room)}`;
}

function tasksText({ training, num_examples, rollouts_per_example, seed }: RunView): string {
  if (training === null) {
    return `${countText(num_examples)} × ${countText(rollouts_per_example)} rollouts, seed ${seed}`;
  }
  return `groups of ${countText(training.group_size)} rollouts, seed ${seed}, ${countText(training.holdout)} held out`;
}

function forkText({ forked_from }: RunView): string | null {
  return forked_from === null ? null : `${forked_from.rollout_id}, behind turn ${forked_from.turn}`;
}

function jsonOrNothing(value: Readonly<Record<string, unknown>>): string {
  return Object.keys(value).length === 0 ? "" : JSON.stringify(value);
}
