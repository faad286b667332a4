/** Routes for prices, balance and ledger of an organisation, and for an operator's postings. */
import * as z from "zod";
import {
  ENTRY_KINDS,
  LedgerEntryList,
  PriceList,
  PriceListRequest,
  PriceLists,
  PriceVersion,
} from "../../contract/money.ts";
import { EXAMPLE, PageLimit, wholeNumber } from "../../contract/primitives.ts";
import { CREATED_HEADERS, IDEMPOTENCY_HEADER, readCreation, readQuery } from "../../kernel/http/answer.ts";
import { unwrap } from "../../kernel/http/errors.ts";
import { type ApiContext, type Operation, serviceOf } from "../../kernel/http/operation.ts";
import type { EntriesPage } from "../rpc.ts";
import type { BillingService } from "../service.ts";
import { AdjustmentRequest, BalanceView, LedgerVerification, PostedEntry, TopUpRequest } from "../wire.ts";

const Id = z.string().min(1).max(200);
const PricesQuery = z.strictObject({
  version: PriceVersion.optional()
    .describe("return only this version, even if a newer one has replaced it")
    .meta({ example: "2026-11" }),
});
const OrganizationQuery = z.strictObject({
  organization: Id.optional()
    .describe("for operators: the id of any organisation")
    .meta({ example: EXAMPLE.organization }),
});
const LedgerQuery = z.strictObject({
  after: wholeNumber(1).optional().describe("`last_id` of the previous page").meta({ example: "12" }),
  limit: PageLimit,
  kind: z.enum(ENTRY_KINDS).optional().describe("only of this kind"),
  run_id: Id.optional().describe("only of this run").meta({ example: EXAMPLE.run }),
  source_id: Id.optional().describe("only about this").meta({ example: EXAMPLE.rollout }),
});
const ONCE = { "Idempotency-Key": "required: a repeat with the same key and body posts nothing more" };
const POSTED_HEADERS = { ...CREATED_HEADERS, location: "the entries of its source" };

const service = serviceOf<BillingService>("billing");

export const ledgerOperations: readonly Operation[] = [
  {
    id: "listPrices",
    route: "GET /v1/prices",
    permission: "caller",
    reach: "organization",
    summary: "Read the prices of the platform: the list in force, then future ones",
    query: PricesQuery,
    reply: { description: "Price lists", schema: PriceLists },
    errors: ["forbidden", "not_found"],
    handle: listPrices,
  },
  {
    id: "createPriceList",
    route: "POST /v1/prices",
    permission: "operator",
    reach: "organization",
    summary: "Add a price list, which never changes and replaces the previous one at its time",
    description:
      "Runs keep the price list they started with. Two lists cannot take effect at the same time: the second is refused.",
    headers: IDEMPOTENCY_HEADER,
    body: { schema: PriceListRequest },
    reply: { status: 201, description: "The list", schema: PriceList, headers: CREATED_HEADERS },
    errors: ["url_not_allowed", "conflict", "idempotency_conflict"],
    handle: createPrices,
  },
  {
    id: "getBalance",
    route: "GET /v1/balance",
    permission: ["billing:read", "operator"],
    reach: "organization",
    summary: "Read the balance of your organisation, and what of it is reserved",
    query: OrganizationQuery,
    reply: { description: "The balance", schema: BalanceView },
    errors: ["not_found"],
    handle: async (context) => {
      const { env, caller, asked } = aboutOne(context);
      return context.json(unwrap(await service(context).readBalance(env, caller, asked)));
    },
  },
  {
    id: "listLedgerEntries",
    route: "GET /v1/ledger",
    permission: "billing:read",
    reach: "organization",
    summary: "Read the entries of the ledger, newest first",
    description:
      "Entries never change: errors are corrected by another entry. Entries older than the newest million are read from archived files, 300 per page: a page with `has_more` may have fewer entries than its limit, or none; continue after its `last_id`.",
    query: LedgerQuery,
    reply: { description: "A page of entries", schema: LedgerEntryList },
    handle: listEntries,
  },
  {
    id: "verifyLedger",
    route: "GET /v1/ledger/verification",
    permission: ["billing:read", "operator"],
    reach: "organization",
    summary: "Recompute the ledger and compare it with the stored balances and months",
    description: "To check the charges of single rollouts, use `GET /v1/runs/{id}/charges`.",
    query: OrganizationQuery,
    reply: { description: "The result", schema: LedgerVerification },
    errors: ["not_found"],
    handle: async (context) => {
      const { env, caller, asked } = aboutOne(context);
      return context.json(unwrap(await service(context).verifyLedger(env, caller, asked)));
    },
  },
  {
    id: "createTopUp",
    route: "POST /v1/top-ups",
    permission: "operator",
    reach: "organization",
    summary: "Post a payment of an organisation",
    headers: ONCE,
    body: { schema: TopUpRequest },
    reply: { status: 201, description: "The posted entry", schema: PostedEntry, headers: POSTED_HEADERS },
    errors: ["not_found", "idempotency_conflict"],
    handle: createTopUp,
  },
  {
    id: "createAdjustment",
    route: "POST /v1/adjustments",
    permission: "operator",
    reach: "organization",
    summary: "Post a refund, a dispute or a correction of a ledger entry",
    description:
      "It may make the balance negative: then no run of the organisation continues until a payment is posted.",
    headers: ONCE,
    body: { schema: AdjustmentRequest },
    reply: {
      status: 201,
      description: "The posted entry",
      schema: PostedEntry,
      example: {
        entry: {
          kind: "correction",
          period: "adj_3hd6ks9g1yr2jpe7ma4q8vbn8c0tz5xw",
          amount_micros: -260,
          lines: [
            { account: "balance", micros: -260 },
            { account: "corrections", micros: 260 },
          ],
          note: "charged before the outage was known",
        },
        balance_micros: 4_999_740,
      },
      headers: POSTED_HEADERS,
    },
    errors: ["not_found", "idempotency_conflict"],
    handle: createAdjustment,
  },
];

function aboutOne(context: ApiContext) {
  const { organization } = readQuery(context, OrganizationQuery);
  const { caller } = context.var;
  return { env: context.env, caller, asked: organization ?? null };
}

async function listPrices(context: ApiContext): Promise<Response> {
  const { version } = readQuery(context, PricesQuery);
  const { now } = context.var;
  const data = unwrap(await service(context).readPrices(context.env, version ?? null, now()));
  return context.json({ object: "list", data } satisfies PriceLists);
}

async function createPrices(context: ApiContext): Promise<Response> {
  const { request, options } = await readCreation(context, PriceListRequest);
  const { caller } = context.var;
  const { value, replayed } = unwrap(await service(context).createPriceList(context.env, caller, request, options));
  return madeReply(context, `/v1/prices?version=${value.version}`, value, replayed);
}

async function listEntries(context: ApiContext): Promise<Response> {
  const { after, limit, kind, run_id, source_id } = readQuery(context, LedgerQuery);
  const { caller } = context.var;
  const of = { kind: kind ?? null, run_id: run_id ?? null, source_id: source_id ?? null };
  const page = unwrap(await service(context).readLedger(context.env, caller, { ...of, before: after ?? null, limit }));
  return context.json(pageOfEntries(page));
}

/** An entry is identified by its number. The next page continues after what was read, even if fewer entries matched. */
function pageOfEntries({ entries, next }: EntriesPage) {
  const first_id = entries[0] === undefined ? null : String(entries[0].number);
  const last = next ?? entries.at(-1)?.number;
  const last_id = last === undefined ? null : String(last);
  return { object: "list", data: entries, first_id, last_id, has_more: next !== null } as const;
}

async function createTopUp(context: ApiContext): Promise<Response> {
  const { request, options } = await readCreation(context, TopUpRequest);
  const { caller } = context.var;
  const { value, id, replayed } = unwrap(await service(context).createTopUp(context.env, caller, request, options));
  return madeReply(context, `/v1/ledger?source_id=${id}`, value, replayed);
}

async function createAdjustment(context: ApiContext): Promise<Response> {
  const { request, options } = await readCreation(context, AdjustmentRequest);
  const { caller } = context.var;
  const { value, id, replayed } = unwrap(
    await service(context).createAdjustment(context.env, caller, request, options),
  );
  return madeReply(context, `/v1/ledger?source_id=${encodeURIComponent(id)}`, value, replayed);
}

/** The reply for something without its own address: the location is a query that finds it. */
function madeReply(context: ApiContext, location: string, value: object, replayed: boolean): Response {
  context.header("location", location);
  if (replayed) context.header("idempotent-replayed", "true");
  return context.json(value, 201);
}
