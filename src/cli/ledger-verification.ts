/**
 * Checks ledgers: each must add up, and with `deep` every rollout must have been charged what its stored usage costs.
 * Recent charges may not be in the ledger yet: they are waited for as long as the caller allows.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { LedgerVerification } from "../billing/wire.ts";
import type { RollcallClient } from "../sdk/client.ts";

const LOOK_EVERY_MS = 500;

/** The platform and organisation whose ledgers are checked. */
export interface LedgerPlace {
  readonly client: RollcallClient;
  readonly inProject: (id: string) => RollcallClient;
  readonly signal: AbortSignal;
}

export interface LedgersAsked {
  /** Ids; an operator may name any. Null for the key's own organisation. */
  readonly organizations: readonly string[] | null;
  readonly deep: boolean;
  /** How long to wait for charges that are not in the ledger yet. */
  readonly waitMs: number;
  readonly log: (line: string) => void;
}

export interface Difference {
  readonly org: string;
  readonly what: string;
  readonly entry_id: string | null;
  readonly expected: number | string | null;
  readonly actual: number | string | null;
}

export interface LedgerFindings {
  readonly ok: boolean;
  readonly organizations: number;
  readonly entries: number;
  /** The balances by organisation. */
  readonly balance_micros: Readonly<Record<string, number>>;
  readonly differences: readonly Difference[];
  /** Ended rollouts without a journal entry; only `deep` looks for them. */
  readonly undrained: number;
  readonly rollouts_checked: number;
}

export async function verifyLedgers(place: LedgerPlace, asked: LedgersAsked): Promise<LedgerFindings> {
  const until = Date.now() + asked.waitMs;
  for (;;) {
    const found = await lookOnce(place, asked);
    if (found.undrained === 0 || Date.now() >= until) return found;
    asked.log(`${found.undrained} not in the ledger yet`);
    await sleep(Math.min(LOOK_EVERY_MS, until - Date.now()), undefined, { signal: place.signal });
  }
}

async function lookOnce(place: LedgerPlace, { organizations, deep }: LedgersAsked): Promise<LedgerFindings> {
  const all = { entries: 0, undrained: 0, rollouts_checked: 0 };
  const balance_micros: Record<string, number> = {};
  const differences: Difference[] = [];
  const { client, signal } = place;
  for (const organization of organizations ?? [undefined]) {
    const found = await client.ledger.verify({ organization }, { signal });
    balance_micros[found.organization_id] = found.balance_micros;
    all.entries += found.entries;
    differences.push(...differencesOf(found));
  }
  // A key reads only the rollouts of its own organisation.
  for (const run of deep ? await runsOf(place) : []) {
    const { checked, unsettled, found } = await chargesOf(place, run);
    all.rollouts_checked += checked;
    all.undrained += unsettled;
    differences.push(...found);
  }
  const ok = differences.length === 0 && all.undrained === 0;
  return { ok, organizations: Object.keys(balance_micros).length, balance_micros, differences, ...all };
}

function differencesOf(found: LedgerVerification): Difference[] {
  const { organization_id: org, balance_micros: actual, recomputed_micros: expected } = found;
  const named = found.differences.map(({ entry, ...one }) => {
    return { org, entry_id: entry === null ? null : String(entry), ...one };
  });
  if (actual === expected) return named;
  return [...named, { org, what: "the balance differs from the sum of its entries", entry_id: null, expected, actual }];
}

interface RunPlace {
  readonly id: string;
  readonly organization: string;
  readonly client: RollcallClient;
}

async function runsOf({ client, inProject, signal }: LedgerPlace): Promise<RunPlace[]> {
  const runs: RunPlace[] = [];
  const { organization } = await client.whoAmI({ signal });
  for await (const { id } of client.projects.list({ limit: 100 }, { signal })) {
    const project = inProject(id);
    for await (const run of project.runs.list({ limit: 100 }, { signal })) {
      runs.push({ id: run.id, organization: organization.id, client: project });
    }
  }
  return runs;
}

async function chargesOf({ signal }: LedgerPlace, { id, organization, client }: RunPlace) {
  const found: Difference[] = [];
  let [checked, unsettled] = [0, 0];
  for (let after: number | undefined; ; ) {
    const slice = await client.runs.auditCharges(id, { after }, { signal });
    checked += slice.checked;
    unsettled += slice.unsettled;
    found.push(
      ...slice.differences.map(({ rollout_id, what, expected, actual }) => {
        return { org: organization, what: `${rollout_id}: ${what}`, entry_id: null, expected, actual };
      }),
    );
    if (slice.next === null) return { checked, unsettled, found };
    after = slice.next;
  }
}
