/** Routes for an organisation's usage and its monthly statements. */
import * as z from "zod";
import { Month } from "../../contract/money.ts";
import { EXAMPLE, NonEmpty, wholeNumber } from "../../contract/primitives.ts";
import { readQuery } from "../../kernel/http/answer.ts";
import { Refusal, unwrap } from "../../kernel/http/errors.ts";
import { parseAs } from "../../kernel/http/input.ts";
import { type ApiContext, type Operation, pathParam, serviceOf } from "../../kernel/http/operation.ts";
import type { BillingService } from "../service.ts";
import {
  BUCKET_WIDTHS,
  StatementList,
  StatementView,
  statementCsv,
  USAGE_GROUPS,
  type UsageGroup,
  type UsageNames,
  UsagePage,
  usageCsv,
} from "../wire.ts";

const Time = wholeNumber(0, 99_999_999_999);
const MOST_BUCKETS = 62;
const USUAL_BUCKETS = { "1h": 24, "1d": 7 } as const;
const GROUP = `(${USAGE_GROUPS.join("|")})`;
const GROUPS = new RegExp(`^${GROUP}(,${GROUP})*$`);
/** The longest name of a model. */
const Name = NonEmpty.max(500);
const USAGE_KINDS = ["eval", "training", "storage"] as const;
const CSV = "text/csv; charset=utf-8";

const UsageQuery = z.strictObject({
  start_time: Time.optional()
    .describe("seconds since the epoch; the first bucket contains it; default: one page that ends now")
    .meta({ example: "1795392000" }),
  end_time: Time.optional().describe("end of the last bucket; default: now").meta({ example: "1795651200" }),
  bucket_width: z.enum(["1h", "1d"]).default("1d").describe("whole hours or days of UTC"),
  group_by: z
    .string()
    .regex(GROUPS, { error: `must be any of ${USAGE_GROUPS.join(", ")}, separated by commas` })
    .optional()
    .describe("one result per value, or combination of values; names separated by commas")
    .meta({ example: "project,model" }),
  project_id: Name.optional().describe("only this project").meta({ example: EXAMPLE.project }),
  key_id: Name.optional().describe("only runs that this key or person began").meta({ example: "key_3hd6ks9g" }),
  environment: Name.optional().describe("only this environment, by its id").meta({ example: "gsm8k" }),
  model: Name.optional().describe("only this model").meta({ example: "qwen3-4b" }),
  kind: z.enum(USAGE_KINDS).optional().describe("only usage of this kind"),
  limit: wholeNumber(1, MOST_BUCKETS)
    .optional()
    .describe("buckets per page; default: 7 days or 24 hours")
    .meta({ example: "7" }),
  page: Time.optional().describe("`next_page` of the previous page").meta({ example: "1795392000" }),
});
const StatementsQuery = z.strictObject({
  after: Month.optional().describe("the last month of the previous page").meta({ example: "2026-11" }),
  limit: wholeNumber(1, 100).default(12),
});

const USED =
  "Usage is counted when a rollout ends, when a trainer takes a batch, and once a day for storage, even if nothing is charged. It normally lags the ledger by a minute. A key of one project reads the usage of that project.";

const service = serviceOf<BillingService>("billing");

export const usageOperations: readonly Operation[] = [
  {
    id: "getUsage",
    route: "GET /v1/usage",
    permission: "billing:read",
    reach: "organization",
    summary: "Read usage and charges by hour or day",
    description: USED,
    query: UsageQuery,
    reply: { description: "A page of buckets, the earliest first", schema: UsagePage },
    handle: async (context) => context.json(await usagePage(context)),
  },
  {
    id: "getUsageCsv",
    route: "GET /v1/usage/csv",
    permission: "billing:read",
    reach: "organization",
    summary: "Read usage and charges as CSV",
    description: `${USED} One line per group and bucket; amounts are micro-dollars.`,
    query: UsageQuery,
    reply: {
      description: "The same page as a table",
      contentType: "text/csv",
      schema: null,
      example: "start_time,end_time,…",
      headers: { link: "the next page, if there is one" },
    },
    handle: usageTable,
  },
  {
    id: "listStatements",
    route: "GET /v1/statements",
    permission: "billing:read",
    reach: "organization",
    summary: "List the statements of closed months, latest first",
    query: StatementsQuery,
    reply: { description: "One page of statements", schema: StatementList },
    handle: listStatements,
  },
  {
    id: "getStatement",
    route: "GET /v1/statements/{month}",
    permission: "billing:read",
    reach: "organization",
    summary: "Read the statement of a month, or of the current month so far",
    reply: { description: "The statement", schema: StatementView },
    errors: ["not_found"],
    handle: async (context) => context.json(await statementOf(context)),
  },
  {
    id: "getStatementCsv",
    route: "GET /v1/statements/{month}/csv",
    permission: "billing:read",
    reach: "organization",
    summary: "Read the statement of a month as CSV",
    reply: {
      description: "One line per account, between the opening and the closing balance",
      contentType: "text/csv",
      schema: null,
      example: "month,account,micros",
    },
    errors: ["not_found"],
    handle: statementTable,
  },
];

async function usagePage(context: ApiContext): Promise<UsagePage> {
  const query = readQuery(context, UsageQuery);
  const { caller, now } = context.var;
  const width = query.bucket_width;
  const limit = query.limit ?? USUAL_BUCKETS[width];
  const end = query.end_time ?? Math.floor(now() / 1000) + 1;
  const start = query.page ?? query.start_time ?? Math.max(0, end - 1 - (limit - 1) * BUCKET_WIDTHS[width]);
  const { orgId, projectId } = caller;
  const asked = { orgId, projectId, start, end, width, limit, groups: groupsOf(query.group_by), only: namesOf(query) };
  return unwrap(await service(context).readUsage(context.env, asked));
}

function namesOf({ project_id, key_id, environment, model, kind }: z.output<typeof UsageQuery>): UsageNames {
  return { project: project_id, key: key_id, environment, model, kind };
}

async function usageTable(context: ApiContext): Promise<Response> {
  const { data, next_page } = await usagePage(context);
  if (next_page !== null) {
    const next = new URL(context.req.url);
    next.searchParams.set("page", next_page);
    context.header("link", `<${next.href}>; rel="next"`);
  }
  return context.body(usageCsv(data), 200, { "content-type": CSV });
}

function groupsOf(text: string | undefined): readonly UsageGroup[] {
  const names = text?.split(",") ?? [];
  const groups = USAGE_GROUPS.filter((group) => names.includes(group));
  if (groups.length === names.length) return groups;
  throw new Refusal({ code: "invalid_request", message: "group_by: contains a name twice", param: "group_by" });
}

async function listStatements(context: ApiContext): Promise<Response> {
  const { after, limit } = readQuery(context, StatementsQuery);
  const { caller } = context.var;
  const page = await service(context).listStatements(context.env, caller, { before: after ?? null, limit });
  return context.json(unwrap(page));
}

async function statementOf(context: ApiContext): Promise<StatementView> {
  const { month } = parseAs(z.strictObject({ month: Month }), { month: pathParam(context, "month") });
  const { caller, now } = context.var;
  return unwrap(await service(context).readStatement(context.env, caller, month, now()));
}

async function statementTable(context: ApiContext): Promise<Response> {
  return context.body(statementCsv(await statementOf(context)), 200, { "content-type": CSV });
}
