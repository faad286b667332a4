/** `rollcall prices`, `balance`, `ledger …`, `top-up`, `adjust`: prices, payments and charges. */
import { randomUUID } from "node:crypto";
import { ADJUSTMENT_KINDS, type BalanceView, type PostedEntry } from "../../billing/wire.ts";
import { ENTRY_KINDS, type LedgerEntry, type PriceList } from "../../contract/money.ts";
import { defined } from "../argument-values.ts";
import { type CommandLine, command, PLATFORM_FLAGS } from "../command-line.ts";
import { EXIT, usageError } from "../exit.ts";
import { type LedgerFindings, verifyLedgers } from "../ledger-verification.ts";
import { onPlatform } from "../on-platform.ts";
import { countText, dollarsText, timeText } from "../terminal/format.ts";
import { listText, safeDetails } from "../terminal/table.ts";

const ENTRY_HEADER = ["number", "kind", "amount", "about", "posted"];
const ORG_FLAG = { value: "ID", help: "for operators: another organisation" } as const;
const ONCE_FLAG = { value: "KEY", help: "an Idempotency-Key: with the same key it is posted once" } as const;
const MICROS_PER_DOLLAR = 1_000_000;

const PRICES = command({
  name: "prices",
  reads: true,
  help: "show the prices of the platform: the list in force, then future ones",
  flags: { version: { value: "TEXT", help: "only this list" }, ...PLATFORM_FLAGS },
  run(line) {
    line.none();
    const query = { version: line.text("version") };
    return onPlatform(line, async ({ client, signal }) => {
      const lists = await client.prices.list(query, { signal });
      return { json: lists, text: () => lists.data.map(pricesText).join("\n\n") };
    });
  },
});

const BALANCE = command({
  name: "balance",
  reads: true,
  help: "show the balance of the organisation, and what is reserved for runs",
  flags: { org: ORG_FLAG, ...PLATFORM_FLAGS },
  run(line) {
    line.none();
    const query = { organization: line.text("org") };
    return onPlatform(line, async ({ client, signal }) => {
      const balance = await client.balance.get(query, { signal });
      return { json: balance, text: () => balanceText(balance) };
    });
  },
});

const LIST = command({
  name: "ledger list",
  reads: true,
  help: "list the entries of the ledger, newest first",
  flags: {
    limit: { short: "n", value: "N", help: "maximum number; default 20" },
    kind: { value: "KIND", choices: ENTRY_KINDS, help: "of one kind" },
    run: { value: "RUN", help: "of one run" },
    source: { value: "ID", help: "about this object: a rollout, a payment" },
    ...PLATFORM_FLAGS,
  },
  run(line) {
    line.none();
    const most = line.count("limit", 1) ?? 20;
    const kind = ENTRY_KINDS.find((one) => one === line.text("kind"));
    const query = { kind, run_id: line.text("run"), source_id: line.text("source"), limit: Math.min(most, 100) };
    return onPlatform(line, async ({ client, signal, term: { room } }) => {
      const data: LedgerEntry[] = [];
      let more = false;
      for await (const entry of client.ledger.list(query, { signal })) {
        more = data.length >= most;
        if (more) break;
        data.push(entry);
      }
      const [first_id, last_id] = [data[0], data.at(-1)].map((one) => (one === undefined ? null : String(one.number)));
      const json = { object: "list", data, first_id, last_id, has_more: more };
      return { json, text: () => listText(data, { header: ENTRY_HEADER, rowOf: entryRow, none: "No entries.", room }) };
    });
  },
});

const VERIFY = command({
  name: "ledger verify",
  reads: true,
  help: "recompute the ledger; exit 1 if anything differs",
  more: `With --deep what each rollout was charged is computed again from what is stored of it, for all runs that the key
reaches, and --wait waits so many seconds for what is not in the ledger yet; what is left then is exit 1 too.`,
  flags: {
    deep: { help: "also check each rollout of each run" },
    wait: { value: "S", help: "seconds to wait for pending charges; default 0" },
    org: { ...ORG_FLAG, repeatable: true },
    ...PLATFORM_FLAGS,
  },
  run(line) {
    line.none();
    const named = line.all("org");
    const [deep, wait] = [line.on("deep"), line.number("wait") ?? 0];
    if (wait < 0) throw usageError("--wait: must be at least 0 seconds", "wait");
    if (deep && named.length > 0)
      throw usageError("--deep: cannot be combined with --org: a key can only read its own rollouts", "deep");
    return onPlatform(line, async (session) => {
      const organizations = named.length === 0 ? null : named;
      const asked = { organizations, deep, waitMs: wait * 1000, log: session.term.log };
      const found = await verifyLedgers(session, asked);
      return { json: found, text: () => findingsText(found, deep), exit: found.ok ? EXIT.good : EXIT.bad };
    });
  },
});

const TOP_UP = command({
  name: "top-up",
  takes: "<organisation>",
  help: "for operators: post a payment of an organisation",
  flags: {
    amount: { value: "DOLLARS", help: "such as 25 or 0.50" },
    note: { value: "TEXT", help: "the kind of payment" },
    once: ONCE_FLAG,
    ...PLATFORM_FLAGS,
  },
  run(line) {
    const organization = line.one("the id of an organisation");
    const request = { organization, amount_micros: microsOf(line, "amount"), ...defined({ note: line.text("note") }) };
    return onPlatform(line, async ({ client, signal }) => {
      const posted = await client.ledger.topUp(request, { signal, idempotencyKey: line.text("once") ?? randomUUID() });
      return { json: posted, text: () => postedText(posted) };
    });
  },
});

const ADJUST = command({
  name: "adjust",
  takes: "<organisation>",
  help: "for operators: post a refund, a dispute or a correction of a ledger entry",
  flags: {
    kind: { value: "KIND", choices: ADJUSTMENT_KINDS, help: "its kind; default correction" },
    amount: { value: "DOLLARS", help: "change of the balance: -0.26 reduces it" },
    source: { value: "ID", help: "the object it is about: a rollout, a payment" },
    note: { value: "TEXT", help: "why" },
    once: ONCE_FLAG,
    ...PLATFORM_FLAGS,
  },
  run(line) {
    const organization = line.one("the id of an organisation");
    const [source, note] = [line.text("source"), line.text("note")];
    if (source === undefined) throw usageError("--source: is required: --source ID", "source");
    if (note === undefined) throw usageError('--note: is required: --note "charged twice"', "note");
    const kind = ADJUSTMENT_KINDS.find((one) => one === line.text("kind")) ?? "correction";
    const request = { organization, kind, amount_micros: microsOf(line, "amount"), source, note };
    return onPlatform(line, async ({ client, signal }) => {
      const posted = await client.ledger.adjust(request, {
        signal,
        idempotencyKey: line.text("once") ?? randomUUID(),
      });
      return { json: posted, text: () => postedText(posted) };
    });
  },
});

/** The exact micro-dollars of a flag in dollars: a double would round them. */
export function microsOf<Name extends string>(line: CommandLine<Name>, flag: Name): number {
  const text = line.text(flag);
  if (text === undefined) throw usageError(`--${flag}: is required, in dollars: --${flag} 25`, flag);
  const [, sign, whole = "", decimals = ""] = /^(-?)\$?(\d{1,9})(?:\.(\d{1,6}))?$/.exec(text) ?? [];
  if (sign === undefined) throw usageError(`--${flag}: ${text} is not an amount such as 25, 0.50 or -0.000260`, flag);
  const micros = Number(whole) * MICROS_PER_DOLLAR + Number(decimals.padEnd(6, "0"));
  return sign === "-" ? -micros : micros;
}

function pricesText({ version, effective_from, fees, models }: PriceList): string {
  return safeDetails({
    prices: version,
    from: effective_from === 0 ? "the start" : timeText(effective_from),
    "a rollout": dollarsText(fees.rollout_micros),
    "1,000 turns": dollarsText(fees.thousand_turns_micros),
    scoring: dollarsText(fees.scoring_micros),
    "per pushed batch": dollarsText(fees.push_micros),
    "per GB and day of storage": dollarsText(fees.gb_day_micros),
    ...Object.fromEntries(models.map((one) => [one.model, tokensText(one)])),
  });
}

function tokensText(one: PriceList["models"][number]): string {
  const { input_per_mtok_micros, cached_input_per_mtok_micros, output_per_mtok_micros } = one;
  const prices = [input_per_mtok_micros, cached_input_per_mtok_micros, output_per_mtok_micros].map(dollarsText);
  return `${prices.join(", ")} per million tokens in, cached, out`;
}

function balanceText(balance: BalanceView): string {
  const { billing, available_micros, credit_limit_micros } = balance;
  return safeDetails({
    balance: dollarsText(balance.balance_micros),
    reserved: dollarsText(balance.reserved_micros),
    available: available_micros === null ? "any" : dollarsText(available_micros),
    billing,
    "credit limit": billing === "postpaid" ? creditText(credit_limit_micros) : null,
    entries: countText(balance.entries),
  });
}

export function creditText(micros: number | null): string {
  return micros === null ? "no limit" : dollarsText(micros);
}

function entryRow({ number, kind, amount_micros, source_id, period, posted_at }: LedgerEntry): string[] {
  const about = period === "" ? source_id : `${source_id} ${period}`;
  return [String(number), kind, dollarsText(amount_micros), about, timeText(posted_at)];
}

function postedText({ organization_id, entry, balance_micros }: PostedEntry): string {
  return safeDetails({
    organisation: organization_id,
    posted: entry === null ? "posted earlier; its entry is archived" : dollarsText(entry.amount_micros),
    entry: entry && String(entry.number),
    balance: dollarsText(balance_micros),
  });
}

function findingsText(found: LedgerFindings, deep: boolean): string {
  const lines = found.differences.map(({ org, what, entry_id, expected, actual }) => {
    const entry = entry_id === null ? "" : `, entry ${entry_id}`;
    return `${org}${entry}: ${what} (expected ${expected}, found ${actual})`;
  });
  const about = safeDetails({
    ledger: found.ok ? "adds up" : "does NOT add up",
    entries: countText(found.entries),
    ...Object.fromEntries(Object.entries(found.balance_micros).map(([org, micros]) => [org, dollarsText(micros)])),
    "rollouts checked": deep ? countText(found.rollouts_checked) : null,
    pending: found.undrained === 0 ? null : countText(found.undrained),
  });
  return [about, ...lines].join("\n");
}

export const LEDGER_COMMANDS = [PRICES, BALANCE, LIST, VERIFY, TOP_UP, ADJUST] as const;
