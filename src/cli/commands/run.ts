/** `rollcall run …`: lists, shows, follows and controls runs. */

import { flatCounts, type RunAudit } from "../../contract/audit.ts";
import { RUN_SORTS, RUN_STATUSES, type RunView } from "../../contract/run.ts";
import { RETRY_CLASSES, RetryRequest, type RunPatch } from "../../contract/run-control.ts";
import { COMMAND } from "../../local/package-root.ts";
import type { CallOptions, RollcallClient } from "../../sdk/client.ts";
import { defined } from "../argument-values.ts";
import { type CommandLine, command, PLATFORM_FLAGS } from "../command-line.ts";
import { reasonsOf } from "../eval/reasons.ts";
import { evalSummary } from "../eval/summary.ts";
import { EXIT, type ExitCode, usageError } from "../exit.ts";
import { followRun, hasEnded } from "../follow.ts";
import { gather, onPlatform, question, type Session } from "../on-platform.ts";
import { Display, doneOf } from "../terminal/display.ts";
import { countText, endedCounts, estimateText, namedCounts, timeText } from "../terminal/format.ts";
import { capText, type EndedRun, RewardTally, resultsTable, resultsText } from "../terminal/results.ts";
import { columns, listText, safeDetails } from "../terminal/table.ts";
import { safeLine } from "../terminal/text.ts";
import { trainingFields } from "../train/summary.ts";

const USUAL_LIMIT = 20;
const LARGEST_PAGE = 100;
const HEADER = ["run", "status", "environment", "model", "done", "reward", "created", "name"];

const LIST = command({
  name: "run list",
  reads: true,
  help: "list runs, newest first",
  flags: {
    status: { value: "STATUS", choices: RUN_STATUSES, help: "only runs in this state" },
    environment: { value: "E", help: "only runs of this environment: id or id@version" },
    metadata: { value: "k=v", repeatable: true, help: "only runs with this metadata" },
    search: { value: "TEXT", help: "only runs with this text in their id, name, model, environment or metadata" },
    sort: { value: "BY", choices: RUN_SORTS, help: "order; default created" },
    limit: { value: "N", help: "number of runs; default 20" },
    ...PLATFORM_FLAGS,
  },
  run(line) {
    line.none();
    const limit = line.count("limit", 1) ?? USUAL_LIMIT;
    const query = {
      status: RUN_STATUSES.find((status) => status === line.text("status")),
      environment: line.text("environment"),
      metadata: line.pairs("metadata"),
      search: line.text("search"),
      sort: RUN_SORTS.find((sort) => sort === line.text("sort")),
      // Asks for one more than is shown, to find out whether there are more.
      limit: Math.min(limit + 1, LARGEST_PAGE),
    };
    const asked = query.status ?? query.environment ?? query.search ?? Object.keys(query.metadata)[0];
    const none = asked === undefined ? `No runs. Start one with: ${COMMAND} eval` : "No such runs.";
    return onPlatform(line, async ({ client, signal, term: { room } }) => {
      const page = await gather(client.runs.list(query, { signal }), limit);
      const more = page.has_more ? "\nThere are more: --limit N" : "";
      return { json: page, text: () => listText(page.data, { header: HEADER, rowOf, none, room }) + more };
    });
  },
});

function rowOf(run: RunView): string[] {
  return [
    run.id,
    run.status,
    `${run.environment.id}@${run.environment.version}`,
    run.model,
    `${countText(doneOf(run))}/${countText(run.counts.planned)}`,
    estimateText(run.report.reward),
    timeText(run.created_at),
    run.name ?? "",
  ];
}

const SHOW = command({
  name: "run show",
  takes: "<run>",
  reads: true,
  help: "show a run: counts, scores and errors",
  flags: PLATFORM_FLAGS,
  run(line) {
    const id = line.one("a run");
    return onPlatform(line, async ({ client, signal, term: { room } }) => {
      const run = await client.runs.get(id, { signal });
      const reasons = line.on("json") ? [] : await reasonsOf(client, run, signal);
      return { json: run, text: () => runText({ run, reasons }, room) };
    });
  },
});

/** The endpoint or fleet where the run's model is called. */
function placeText({ endpoint, fleet }: RunView): string {
  if (endpoint === null) return `on the fleet ${fleet?.name ?? fleet?.id}`;
  return endpoint.name === null ? `at ${endpoint.base_url}` : `at ${endpoint.name}, ${endpoint.base_url}`;
}

function runText({ run, reasons }: Pick<EndedRun, "run" | "reasons">, room: number): string {
  const { counts, environment, judges } = run;
  const fields = {
    run: run.id,
    name: run.name,
    status: run.error === null ? run.status : `${run.status}: ${run.error.message}`,
    status_reason:
      run.status_reason === null
        ? null
        : [run.status_reason.state, run.status_reason.reason].filter(Boolean).join(": "),
    environment: `${environment.id}@${environment.version} ${jsonOrNothing(run.environment_args)}`,
    dataset: run.dataset,
    agent: run.agent?.name ?? null,
    model: `${run.model} ${placeText(run)}`,
    judges: jsonOrNothing(judges) || null,
    sampling: jsonOrNothing(run.sampling) || null,
    tasks: tasksText(run),
    ...(run.training && trainingFields(run.training)),
    counts: namedCounts({ pending: counts.pending, "in flight": counts.in_flight, ...endedCounts(counts) }),
    "max concurrent": countText(run.max_concurrent),
    limits: jsonOrNothing(run.limits),
    "forked from": run.forked_from && `${run.forked_from.rollout_id}, after turn ${run.forked_from.turn + 1}`,
    "dead letters": run.dead_letters === 0 ? null : countText(run.dead_letters),
    metadata: jsonOrNothing(run.metadata) || null,
    created: timeText(run.created_at),
    finished: run.finished_at === null ? null : timeText(run.finished_at),
  };
  return `${safeDetails(fields)}\n\n${resultsTable([{ run, reasons }], room)}`;
}

function tasksText({ training, num_examples, rollouts_per_example, seed }: RunView): string {
  if (training === null) {
    return `${countText(num_examples)} × ${countText(rollouts_per_example)} rollouts, seed ${seed}`;
  }
  return `groups of ${countText(training.group_size)} rollouts, seed ${seed}, ${countText(training.holdout)} held out`;
}

function jsonOrNothing(value: Readonly<Record<string, unknown>>): string {
  return Object.keys(value).length === 0 ? "" : JSON.stringify(value);
}

const WATCH = command({
  name: "run watch",
  takes: "<run>…",
  help: "follow runs until they end",
  more: "Exits 1 if any of them does not complete. If the command is interrupted, the runs continue.",
  flags: PLATFORM_FLAGS,
  run(line) {
    const ids = [...new Set(line.positionals)];
    if (ids.length === 0) throw usageError("at least one run is required");
    const goOn = () => `; the runs continue; follow them with: ${COMMAND} run watch ${ids.join(" ")}`;
    const watch = async (session: Session) => {
      const ended = await watchRuns(ids, session);
      const data = ended.map((each) => {
        const { finished_at, created_at } = each.run;
        return evalSummary(each, (finished_at ?? created_at) - created_at, null);
      });
      const exit = ended.every(({ run }) => run.status === "completed") ? EXIT.good : EXIT.bad;
      return { json: { object: "list", data }, text: () => resultsText(ended, session.term), exit };
    };
    return onPlatform(line, watch, goOn);
  },
});

/** Follows the runs and returns them when they have ended. The runs continue without this command. */
async function watchRuns(ids: readonly string[], { client, signal, term }: Session): Promise<EndedRun[]> {
  const display = new Display(term, () => performance.now());
  // A wrong id is reported before anything is drawn.
  for (const run of await Promise.all(ids.map((id) => client.runs.get(id, { signal })))) {
    display.show(run);
  }
  const follow = async (id: string) => {
    const tally = new RewardTally();
    const run = await followRun(client, id, {
      signal,
      onProgress: (it) => display.show(it),
      onFinished: ({ reward }) => tally.add(reward),
    });
    return { run, tally, reasons: await reasonsOf(client, run, signal) };
  };
  return await Promise.all(ids.map(follow));
}

const CANCEL = question({
  name: "run cancel",
  takes: "<run>",
  help: "cancel a run",
  what: "a run",
  ask: (client, id, options) => client.runs.cancel(id, options),
  text: (run) => {
    const { id, status, counts } = run;
    return hasEnded(run) ? `${id}: ${status}` : `${id}: cancelling ${countText(counts.in_flight)} rollouts in flight`;
  },
});

const PAUSE = question({
  name: "run pause",
  takes: "<run>",
  help: "pause a run: dispatch nothing until it is resumed",
  more: "Rollouts in flight finish.",
  what: "a run",
  ask: (client, id, options) => client.runs.pause(id, options),
  text: changedText,
});

const RESUME = question({
  name: "run resume",
  takes: "<run>",
  help: "resume a paused run",
  what: "a run",
  ask: (client, id, options) => client.runs.resume(id, options),
  text: changedText,
});

const RELEASE = question({
  name: "run release-lost-calls",
  takes: "<run>",
  help: "release what a run's cap reserves for lost calls",
  more: "For owners. The audit log records who released how much.",
  what: "a run",
  ask: (client, id, options) => client.runs.releaseLostCalls(id, options),
  text: (run) => `${run.id}: ${capText(run) || "it has no cap"}`,
});

const UPDATE = command({
  name: "run update",
  takes: "<run>",
  help: "change the concurrent rollouts, name or metadata of a run",
  flags: {
    "max-concurrent": {
      short: "c",
      value: "N",
      help: "maximum of concurrent rollouts from now on; rollouts in flight finish",
    },
    name: { value: "TEXT", help: "a name of the run" },
    metadata: { value: "k=v", repeatable: true, help: "replace its metadata" },
    ...PLATFORM_FLAGS,
  },
  run(line) {
    const patch: RunPatch = defined({
      max_concurrent: line.count("max-concurrent", 1),
      name: line.text("name"),
      metadata: line.all("metadata").length === 0 ? undefined : line.pairs("metadata"),
    });
    if (Object.keys(patch).length === 0) throw usageError("set at least one flag to change: see --help");
    return change(line, (client, id, options) => client.runs.update(id, patch, options));
  },
});

const RETRY = command({
  name: "run retry",
  takes: "<run>",
  help: "retry the rollouts that failed or have no score",
  more: "An ended run continues; follow it with run watch. A cancelled run cannot be retried.",
  flags: {
    class: {
      value: "CLASS",
      choices: RETRY_CLASSES,
      repeatable: true,
      help: "only rollouts that ended for this reason",
    },
    ...PLATFORM_FLAGS,
  },
  run(line) {
    const classes = line.all("class");
    const request = RetryRequest.parse(classes.length === 0 ? {} : { classes });
    return change(line, (client, id, options) => client.runs.retry(id, request, options));
  },
});

function change(
  line: CommandLine<"json" | "platform" | "timeout">,
  ask: (client: RollcallClient, id: string, options: CallOptions) => Promise<RunView>,
): Promise<ExitCode> {
  const id = line.one("a run");
  return onPlatform(line, async ({ client, signal }) => {
    const run = await ask(client, id, { signal });
    return { json: run, text: () => changedText(run) };
  });
}

/** "run_…: paused, 3 in flight, 20 to come, 8 at once". */
function changedText({ id, status, counts, max_concurrent }: RunView): string {
  const ahead = `${countText(counts.in_flight)} in flight, ${countText(counts.pending)} to come`;
  return `${id}: ${status}, ${ahead}, ${countText(max_concurrent)} at once`;
}

const AUDIT = question({
  name: "run audit",
  takes: "<run>",
  reads: true,
  help: "check the four records of a run against each other; exit 1 if they differ",
  what: "a run",
  ask: (client, id, options) => client.runs.audit(id, options),
  text: auditText,
  exit: ({ holds }) => (holds ? EXIT.good : EXIT.bad),
});

function auditText({ run_id, holds, sources, notes, violations }: RunAudit): string {
  const { counters, run_rows, d1, r2 } = sources;
  const { current, ...stored } = d1;
  const table = columns(
    ["record", "counts"],
    [
      ["counters", namedCounts(flatCounts(counters))],
      ["rows of the run", namedCounts(flatCounts(run_rows))],
      ["database", `${namedCounts(flatCounts(stored))}${current ? "" : " (behind)"}`],
      ["object store", `${countText(r2.rollouts)} rollouts in ${countText(r2.segments)} segments`],
    ],
  );
  const result = holds ? `${run_id} is consistent` : `${run_id} is not consistent`;
  const broken = violations.map(({ rule, detail }) => `  ${rule}: ${safeLine(detail)}`);
  return [table, "", result, ...broken, ...notes.map((note) => `  ${safeLine(note)}`)].join("\n");
}

export const RUN_COMMANDS = [LIST, SHOW, WATCH, CANCEL, PAUSE, RESUME, UPDATE, RETRY, RELEASE, AUDIT] as const;
