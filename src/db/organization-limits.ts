/** What an organisation may use at once, and what it keeps. */
import { sum } from "drizzle-orm";
import { DEFAULT_LIMITS, type OrganizationLimits } from "../contract/identity.ts";
import type { BillingMode } from "../contract/money.ts";
import type { Scope } from "../contract/scope.ts";
import { datasets, organizations, runs } from "./schema.ts";
import { inOrganization, inProject } from "./scoped.ts";

export interface OrganizationStanding {
  readonly limits: OrganizationLimits;
  /** Bytes of its datasets, and of what its runs left, as far as the list of runs knows. */
  readonly stored: number;
  readonly billing: BillingMode;
}

/** By two indexes; it reads an entry for each run and dataset, so whoever asks remembers the answer for a while. */
export async function standingOf(database: D1Database, orgId: string): Promise<OrganizationStanding> {
  const owned = inOrganization(database, orgId);
  const [found, [files], [left]] = await owned.batch([
    owned.columns({ limits: organizations.limits, billing: organizations.billing }, organizations),
    owned.columns({ bytes: sum(datasets.bytes) }, datasets),
    owned.columns({ bytes: sum(runs.stored_bytes) }, runs),
  ]);
  return {
    limits: { ...DEFAULT_LIMITS, ...found[0]?.limits },
    stored: Number(files?.bytes ?? 0) + Number(left?.bytes ?? 0),
    billing: found[0]?.billing ?? "off",
  };
}

/** What a project stores, and whether its organisation is charged for it. */
export interface StoredThere {
  /** Of its datasets, and of what its runs left, as far as the list of runs knows. */
  readonly bytes: number;
  readonly billing: BillingMode;
}

/** It reads an entry for each run and dataset of the project. */
export async function storedIn(database: D1Database, scope: Scope): Promise<StoredThere> {
  const project = inProject(database, scope);
  const [[files], [left]] = await project.batch([
    project.columns({ bytes: sum(datasets.bytes) }, datasets),
    project.columns({ bytes: sum(runs.stored_bytes) }, runs),
  ]);
  const [owner] = await inOrganization(database, scope.orgId).columns({ billing: organizations.billing }, organizations);
  return { bytes: Number(files?.bytes ?? 0) + Number(left?.bytes ?? 0), billing: owner?.billing ?? "off" };
}
