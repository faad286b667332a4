/** Rows for training, made of a run's rollouts; a page of lines at a time, one after another of the same moment. */
import * as z from "zod";
import { DpoRow, ExportQuery, leftOutNote, SftRow, VerifiersRow } from "../contract/export.ts";
import { unwrap } from "./errors.ts";
import { parseAs, queryOf } from "./input.ts";
import { linesReply } from "./lines.ts";
import { SFT_ROW } from "./openapi/examples.ts";
import { type ApiContext, type Operation, pathParam } from "./operation.ts";

export const exportOperations: readonly Operation[] = [
  {
    id: "exportRun",
    method: "get",
    path: "/v1/runs/{id}/export",
    summary: "Export a run's rollouts as rows for training, one JSON object a line",
    description:
      "`sft`: the whole conversation of each scored rollout. `dpo`: pairs of one task's rollouts whose rewards differ, the best with the worst, the second best with the second worst. `verifiers`: the lines of its results.jsonl, those without a score too unless a filter asks for one. In `sft` and `dpo` the arguments of a tool call are an object; a rollout whose calls cannot be written so is left out, and `x-left-out` says how many and why. Of each slot the latest attempt counts. All pages are of the moment at which the first was asked for; one may hold nothing and still have a link to the next.",
    query: ExportQuery,
    reply: {
      status: 200,
      description: "One page of rows; follow the link until there is none",
      contentType: "application/jsonl",
      schema: z.union([SftRow, DpoRow, VerifiersRow]).meta({ id: "ExportRow" }),
      example: SFT_ROW,
      headers: {
        link: 'the next page, rel="next"; absent on the last',
        "x-left-out":
          "what this page left out, as JSON `{rows, reasons: {name: rows}, rollouts: [id]}`; absent where that is nothing",
      },
    },
    errors: ["invalid_request", "unknown_field", "not_found", "in_progress", "rate_limited"],
    handle: exportPage,
  },
];

async function exportPage(context: ApiContext): Promise<Response> {
  const query = parseAs(ExportQuery, queryOf(context.req.url));
  const { services } = context.var.dependencies;
  const id = pathParam(context, "id");
  return await linesReply(context, async () => {
    const page = unwrap(await services.exportRun(context.env, context.var.scope, id, query));
    const note = leftOutNote(page.left_out);
    if (note !== null) context.header("x-left-out", JSON.stringify(note));
    return page;
  });
}
