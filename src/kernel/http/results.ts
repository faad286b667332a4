/** The results of a run: its ended rollouts, rows made from them, its metrics, and its comparison with other runs. */
import * as z from "zod";
import { CompareQuery, CompareTasksQuery, RunComparison, TaskComparisonList } from "../../contract/comparison.ts";
import { DpoRow, ExportQuery, leftOutNote, SftRow, VerifiersRow } from "../../contract/export.ts";
import { LIMITS } from "../../contract/limits.ts";
import { listOf, wholeNumber } from "../../contract/primitives.ts";
import { OUTCOMES, ResultRow } from "../../contract/run.ts";
import { StepMetrics } from "../../contract/training-view.ts";
import { answer, ask, readQuery } from "./answer.ts";
import { linesReply } from "./lines.ts";
import type { ApiContext, Operation } from "./operation.ts";

/** CPU of selecting a page's rows, in milliseconds. */
const EXPORT_COST_MS = 20;

const ResultQuery = z.strictObject({
  outcome: z.enum(OUTCOMES).optional(),
  after: wholeNumber(0).default(0).describe("taken from the link to this page"),
  limit: wholeNumber(1, LIMITS.resultsPerPage).default(100),
});

const MetricsQuery = z.strictObject({
  after_step: wholeNumber(0).optional().describe("steps after this one; default: from the first").meta({ example: 40 }),
  limit: wholeNumber(1, LIMITS.stepsPerPage).default(100),
});

export const StepMetricsList = listOf(StepMetrics, "StepMetricsList", "42");

export const resultOperations: readonly Operation[] = [
  {
    id: "listResults",
    route: "GET /v1/runs/{id}/results",
    permission: "rollouts:read",
    summary: "Read a run's finished rollouts, one JSON object a line",
    query: ResultQuery,
    reply: {
      description: "One page of rows; follow the link until there is none",
      contentType: "application/jsonl",
      schema: ResultRow,
      headers: { link: 'the next page, rel="next"; absent on the last' },
    },
    errors: ["in_progress", "rate_limited"],
    handle: readPage,
  },
  {
    id: "exportRun",
    route: "GET /v1/runs/{id}/export",
    costMs: EXPORT_COST_MS,
    permission: "rollouts:read",
    summary: "Export a run's rollouts as rows for training, one JSON object a line",
    description:
      "`sft`: the whole conversation of each scored rollout. `dpo`: pairs of one task's rollouts with different rewards, the best with the worst, the second best with the second worst. `verifiers`: the lines of its results.jsonl; rollouts without a score are included unless a filter needs one. In `sft` and `dpo` the arguments of a tool call are an object; a rollout whose calls do not fit that is left out, and `x-left-out` says how many and why. The latest attempt of each slot counts. All pages show the state at the time of the first request; a page may be empty and still have a link to the next.",
    query: ExportQuery,
    reply: {
      description: "One page of rows; follow the link until there is none",
      contentType: "application/jsonl",
      schema: z.union([SftRow, DpoRow, VerifiersRow]).meta({ id: "ExportRow" }),
      headers: {
        link: 'the next page, rel="next"; absent on the last',
        "x-left-out":
          "what this page left out, as JSON `{rows, reasons: {name: rows}, rollouts: [id]}`; absent if nothing",
      },
    },
    errors: ["in_progress", "rate_limited"],
    handle: exportPage,
  },
  {
    id: "compareRuns",
    route: "GET /v1/runs/{id}/compare",
    permission: "runs:read",
    summary: "Compare a run with a baseline, task by task",
    description:
      "Tasks are matched by the content of their rows, in any order; each counts once, by the mean of its scored rollouts. Runs that have not ended are compared by what they have scored so far. `conflict`: no task is scored in both.",
    query: CompareQuery,
    reply: { description: "The paired difference, and one page of tasks", schema: RunComparison },
    errors: ["conflict"],
    handle: (context) => answer(context, context.var.services.compareRuns, readQuery(context, CompareQuery)),
  },
  {
    id: "compareTasks",
    route: "GET /v1/runs/{id}/compare/tasks",
    permission: "runs:read",
    summary: "List the tasks on which a run differs from at least one of several baselines",
    description: "Tasks are matched as in the comparison with one baseline, and each run has its mean.",
    query: CompareTasksQuery,
    reply: {
      description: "One page of tasks, by task_key; `last_id` is the next `after`",
      schema: TaskComparisonList,
    },
    handle: (context) => answer(context, context.var.services.compareTasks, readQuery(context, CompareTasksQuery)),
  },
  {
    id: "listMetrics",
    route: "GET /v1/runs/{id}/metrics",
    permission: "runs:read",
    summary: "Read the metrics of a training run by step; an eval has none",
    query: MetricsQuery,
    reply: {
      description: "One page of steps, earliest first; `last_id` is the next `after_step`",
      schema: StepMetricsList,
    },
    handle: readSteps,
  },
];

async function readPage(context: ApiContext): Promise<Response> {
  const { outcome = null, ...page } = readQuery(context, ResultQuery);
  return await linesReply(context, () => ask(context, context.var.services.readResults, { ...page, outcome }));
}

async function exportPage(context: ApiContext): Promise<Response> {
  const query = readQuery(context, ExportQuery);
  return await linesReply(context, async () => {
    const page = await ask(context, context.var.services.exportRun, query);
    const note = leftOutNote(page.left_out);
    if (note !== null) context.header("x-left-out", JSON.stringify(note));
    return page;
  });
}

async function readSteps(context: ApiContext): Promise<Response> {
  const { after_step = -1, limit } = readQuery(context, MetricsQuery);
  const read = await ask(context, context.var.services.readMetrics, { after: after_step, limit: limit + 1 });
  const data = read.slice(0, limit);
  const [first_id, last_id] = [data[0], data.at(-1)].map((one) => (one ? String(one.step) : null));
  return context.json({ object: "list", data, first_id, last_id, has_more: read.length > limit });
}
