/**
 * The deep audit of a run's charges. It computes the charge of each ended rollout again, from its stored trajectory and
 * the prices that the run pinned, and compares it with the run's row and with the ledger's journal entry. Works slice
 * by slice and only reads.
 */
import type { ChargeAudit } from "../contract/audit.ts";
import { LIMITS } from "../contract/limits.ts";
import type { ChargeLines, LedgerEntry } from "../contract/money.ts";
import type { Scope } from "../contract/scope.ts";
import { addUsage, type Trajectory } from "../contract/trajectory.ts";
import { sumOfLines } from "../core/costs/run-costs.ts";
import { type Result, refuse } from "../kernel/messages/refusal.ts";
import type { RunRpc } from "../kernel/messages/rpc.ts";
import type { JudgeCalls, RolloutEntry } from "../kernel/messages/run-records.ts";
import type { RunSpec } from "../kernel/messages/wire.ts";
import { linesOf } from "../kernel/run/charged.ts";
import { readPage } from "../kernel/service/read-rollouts.ts";
import { lostRun, openRun } from "../kernel/service/read-run.ts";
import { chargeOf, type RolloutUse } from "./charge.ts";
import { endOf } from "./charging.ts";
import type { EntriesPage } from "./rpc.ts";
import { ledgerObject } from "./rpc.ts";

const ROLLOUTS_A_SLICE = 250;
const MOST_DIFFERENCES = 100;
/** Attempts: a trajectory may move into a segment while it is being read. */
const LOOKS = 3;

type Difference = ChargeAudit["differences"][number];

/** `after`: the finish number at which the previous slice ended. */
export async function auditCharges(
  env: Env,
  scope: Scope,
  id: string,
  { after }: { readonly after: number },
): Promise<Result<ChargeAudit>> {
  const found = await openRun(env, scope, id);
  if (!found.ok) return found;
  const { record, object } = found.value;
  const { spec } = record.run;
  const slice = await readSlice(env, spec, object, after);
  if (!slice.ok) return slice;
  const { read, more } = slice.value;
  const compared = await compareAll(env, spec, slice.value);
  const value: ChargeAudit = {
    ...{ object: "charge_audit", run_id: id, checked: read.length },
    charged_micros: compared.reduce((sum, { lines }) => sum + sumOfLines(lines), 0),
    unsettled: compared.filter(({ known }) => !known).length,
    differences: compared.flatMap(({ differences }) => differences).slice(0, MOST_DIFFERENCES),
    next: more ? (read.at(-1)?.entry.finish_seq ?? null) : null,
  };
  return { ok: true, value };
}

interface Compared {
  /** The recomputed charge, by line. */
  readonly lines: ChargeLines;
  /** The ledger has already taken this end. */
  readonly known: boolean;
  readonly differences: readonly Difference[];
}

async function compareAll(env: Env, spec: RunSpec, { read, settled }: Slice): Promise<Compared[]> {
  const ids = read.map(({ entry }) => entry.id);
  const posted = await readPosted(env, spec, ids);
  return read.map(({ entry, trajectory }) => {
    const lines = chargedAnew(spec, entry, trajectory);
    const known = (entry.finish_seq ?? 0) <= settled;
    const inRow = differencesOf(entry.id, "row", lines, linesOf(entry));
    const inLedger = known ? differencesOf(entry.id, "ledger", lines, revenueOf(posted.get(entry.id))) : [];
    return { lines, known, differences: [...inRow, ...inLedger] };
  });
}

/** The journal entries of these rollouts, by rollout id. Read page by page from the ledger. */
async function readPosted(env: Env, spec: RunSpec, ids: readonly string[]): Promise<Map<string, LedgerEntry>> {
  const ledger = ledgerObject(env, spec.scope.orgId);
  const posted = new Map<string, LedgerEntry>();
  for (let before: number | null = null; posted.size < ids.length; ) {
    const missing = ids.filter((id) => !posted.has(id));
    const { entries, next }: EntriesPage = await ledger.entriesOf(spec.run_id, missing, before);
    for (const entry of entries.filter(isOfRollout)) posted.set(entry.source_id, entry);
    if (next === null) break;
    before = next;
  }
  return posted;
}

type Slice = {
  readonly read: NonNullable<Awaited<ReturnType<typeof readPage>>>;
  readonly settled: number;
  readonly more: boolean;
};

async function readSlice(env: Env, spec: RunSpec, object: RunRpc, after: number): Promise<Result<Slice>> {
  const limit = Math.min(ROLLOUTS_A_SLICE, LIMITS.resultsPerPage);
  for (let look = 1; look <= LOOKS; look += 1) {
    const page = await object.finished(after, limit, null, true);
    if (page === null) return lostRun(spec.run_id);
    const read = await readPage(env, spec, page);
    if (read === null) continue;
    const more = page.cut || read.length < page.rows.length || page.rows.length === limit;
    // A run that started before the ledger existed has no journal entries.
    const settled = spec.money === undefined ? 0 : (page.settled ?? 0);
    return { ok: true, value: { read, settled, more: more && read.length > 0 } };
  }
  return refuse(
    "in_progress",
    "trajectories are being compacted, or one is missing: audit the run, then try again",
    "after",
  );
}

/** The charge by the stored trajectory. Judgements that the row could not hold are taken from the stored charge. */
function chargedAnew(spec: RunSpec, entry: RolloutEntry, trajectory: Trajectory | null): ChargeLines {
  const prices = spec.money?.prices ?? null;
  const { outcome, reason } = entry;
  if (prices === null || outcome === null) return {};
  const judgements = JSON.parse(entry.judgements ?? "[]") as JudgeCalls[];
  const ending = { ...endOf(spec, entry, { outcome, reason }), left: trajectory !== null };
  const lines = chargeOf(prices, {
    ...ending,
    ...used(trajectory, ending.carried),
    error: trajectory?.error?.error ?? ending.error,
    judged: judgements.map(({ judge, usage }) => ({ judge, ...usage })),
  });
  const reported = judgements.reduce((sum, { calls }) => sum + calls, 0);
  if (reported === entry.judge_calls) return lines;
  const { judge_tokens = 0 } = linesOf(entry);
  return { ...lines, ...(judge_tokens > 0 && { judge_tokens }) };
}

/**
 * A carried rollout used nothing itself: its turns were charged where they were sampled. Replies that could not be used
 * have no turn, but the trajectory's usage has their tokens.
 */
function used(trajectory: Trajectory | null, carried: boolean): Pick<RolloutUse, "turns" | "policy"> {
  if (trajectory === null || carried) return { turns: 0, policy: addUsage([]) };
  const { turns, usage, forked_from } = trajectory;
  const inherited = forked_from === undefined ? 0 : forked_from.turn + 1;
  return { turns: turns.length - inherited, policy: usage };
}

function isOfRollout({ kind }: LedgerEntry): boolean {
  return kind === "rollout" || kind === "rescore";
}

const REVENUE = "revenue/";

/** The revenue of a journal entry, by line; empty if there is no entry. */
function revenueOf(entry: LedgerEntry | undefined): ChargeLines {
  const of = (entry?.lines ?? []).filter(({ account }) => account.startsWith(REVENUE));
  return Object.fromEntries(of.map(({ account, micros }) => [account.slice(REVENUE.length), micros]));
}

function differencesOf(rollout_id: string, where: string, expected: ChargeLines, actual: ChargeLines): Difference[] {
  const micros = (lines: ChargeLines) => new Map(Object.entries(lines));
  const [wanted, got] = [micros(expected), micros(actual)];
  const names = [...new Set([...wanted.keys(), ...got.keys()])];
  return names.flatMap((line): Difference[] => {
    const [should, is] = [wanted.get(line) ?? 0, got.get(line) ?? 0];
    return should === is ? [] : [{ rollout_id, what: `${where}: ${line}`, expected: should, actual: is }];
  });
}
