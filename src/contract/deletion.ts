/** Deletions on the wire: jobs that delete something for good, and the receipts of what they deleted. */
import * as z from "zod";
import { CountsByName, EXAMPLE, listOf, named, Seconds } from "./primitives.ts";

export const DELETION_KINDS = ["run", "project", "organization"] as const;
export type DeletionKind = (typeof DELETION_KINDS)[number];
export const DELETION_STATES = ["queued", "running", "done"] as const;

/** For so many days the storage can be restored to an earlier moment, and deleted data with it. */
const RECOVERY_DAYS = 30;
const DAY_S = 24 * 3600;

export const DeletionView = named("Deletion", {
  object: z.literal("deletion"),
  id: z.string().meta({ example: EXAMPLE.deletion }),
  kind: z.enum(DELETION_KINDS),
  target_id: z.string().describe("of what is deleted").meta({ example: EXAMPLE.run }),
  state: z.enum(DELETION_STATES).describe("`queued` until deletion starts, then `running`, then `done`"),
  counts: CountsByName.describe(
    "deleted so far: `runs`, `objects` (Durable Objects), `files` and their `bytes`, `rows` of the database; " +
      "of an organization that was charged also `ledger_entries`, and the last `balance_micros` or `owed_micros`",
  ).meta({ example: { runs: 1, objects: 3, files: 12, bytes: 1_048_576, rows: 2 } }),
  created_at: Seconds,
  finished_at: Seconds.nullable().describe("when everything was deleted"),
  recoverable_until: Seconds.nullable().describe(
    "until when point-in-time recovery of the underlying storage keeps copies: 30 days after the end; null before the end",
  ),
});
export type DeletionView = z.infer<typeof DeletionView>;
export const DeletionList = listOf(DeletionView, "DeletionList", EXAMPLE.deletion);

/** The time until which deleted data can be restored, in seconds since the epoch. */
export function recoverableUntil(finishedAt: number): number {
  return finishedAt + RECOVERY_DAYS * DAY_S;
}

/** The body of the deletion of an organisation: its name, as a confirmation. */
export const OrganizationDeletion = z
  .strictObject({ confirm: z.string().min(1).describe("the organisation's name").meta({ example: "Acme" }) })
  .meta({ id: "OrganizationDeletion" });
