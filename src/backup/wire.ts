/**
 * What `rollcall deploy backup` and `restore` exchange with the Worker of the same release. It is not part of the
 * public API: only a holder of ROLLCALL_SECRET can call it.
 */
import * as z from "zod";

/** All paths of this exchange begin with it. */
export const BACKUP_PATH = "/operator/backup";

/**
 * Objects with data that nothing else has, in the order in which they are copied: the ledger (`account`) before the runs
 * that send it their charges. `organization`: the deletions of an organisation. Objects of leases have no such data.
 */
export const OBJECT_KINDS = [
  "account",
  "audit",
  "organization",
  "project",
  "fleet",
  "webhook",
  "trigger",
  "run",
] as const;
/** Objects of a run, which are named by it. */
const KINDS_OF_RUNS = ["trainer", "shard"] as const;
export const ObjectKind = z.enum([...OBJECT_KINDS, ...KINDS_OF_RUNS]);
export type ObjectKind = z.output<typeof ObjectKind>;

/** Bytes of a file that are read or written at once. Files that are not longer are one part. */
export const PART_BYTES = 16 * 1024 * 1024;
/** The header with the size of the whole file of which a part is read. */
export const FILE_SIZE = "rollcall-file-size";
/** Objects that begin to work with one request. */
export const STARTED_AT_ONCE = 50;

export const DeploymentState = z.object({
  /** The newest migration of its D1 databases. */
  schema: z.string().nullable(),
  /** Names the secret without revealing anything of it. */
  secret: z.string(),
  /** The backup that is being restored into it; null if none is. */
  restoring: z.string().nullable(),
  empty: z.boolean(),
  /** The tables of each of its D1 databases, in the order in which they are restored. */
  tables: z.array(z.string()),
  /** How many D1 databases it has. Absent: one. */
  databases: z.int().min(1).optional(),
});
export type DeploymentState = z.output<typeof DeploymentState>;

/**
 * What is left of a restore. `starts`: everything is written, and some objects may work already. What they changed must
 * not be overwritten.
 */
export const RestoreBegun = z.object({ left: z.enum(["everything", "starts", "nothing"]) });
export type RestoreBegun = z.output<typeof RestoreBegun>;

/** `text`: a JSON value a line. First `{columns}`, then `{row}` each. */
export const RowsPage = z.object({ text: z.string(), next: z.number().nullable() });
export type RowsPage = z.output<typeof RowsPage>;

export const ObjectsPage = z.object({
  objects: z.array(z.object({ name: z.string(), trains: z.boolean() })),
  next: z.number().nullable(),
});
export type ObjectsPage = z.output<typeof ObjectsPage>;

/** One page of an object's storage, with what a copy needs besides it. */
export const StoragePage = z.object({
  text: z.string(),
  next: z.string().nullable(),
  /** Pages with the same value are of one state. */
  state: z.string(),
  /** Epoch milliseconds. */
  alarm: z.number().nullable(),
  needs: z.object({ files: z.array(z.string()), shards: z.array(z.number()) }),
});
export type StoragePage = z.output<typeof StoragePage>;

/** `sha256`: of the content, in hex; null if the bucket does not have it. */
export const StoredFile = z.object({ key: z.string(), size: z.number(), sha256: z.string().nullable() });
export type StoredFile = z.output<typeof StoredFile>;
export const FilesPage = z.object({ files: z.array(StoredFile), next: z.string().nullable() });
export type FilesPage = z.output<typeof FilesPage>;

/** `database`: the number of the D1 database; absent: 0. */
export const WrittenRows = z.object({
  database: z.int().min(0).optional(),
  table: z.string(),
  first: z.boolean(),
  text: z.string(),
});
export type WrittenRows = z.output<typeof WrittenRows>;

export const WrittenStorage = z.object({
  kind: ObjectKind,
  name: z.string(),
  of: z.string(),
  first: z.boolean(),
  last: z.boolean(),
  text: z.string(),
});
export type WrittenStorage = z.output<typeof WrittenStorage>;

export const StartedObjects = z.object({
  objects: z.array(z.object({ kind: ObjectKind, name: z.string(), alarm: z.number().nullable() })).max(STARTED_AT_ONCE),
});
export type StartedObjects = z.output<typeof StartedObjects>;

export const UploadedParts = z.object({ parts: z.array(z.object({ partNumber: z.int(), etag: z.string() })) });

const RunPlace = z.object({ organization_id: z.string(), project_id: z.string(), run_id: z.string() });

/** What one call of the repair did. `next`: `after` of the next call; null if it was the last. */
export const RepairedPage = z.object({
  /** Runs that were compared with their rows. */
  checked: z.number(),
  /** Rows of runs that were written again, because the database did not have them or not their endpoints. */
  restored: z.number(),
  /** Rows that were older than the state of their runs. */
  updated: z.number(),
  /** Entries of the index that were written for runs of earlier releases. */
  indexed: z.number(),
  /** Entries that were deleted, because their run never began. */
  deleted: z.number(),
  /** Runs without a row whose project does not exist in the database, or is being deleted. */
  unowned: z.array(RunPlace),
  failed: z.array(RunPlace.extend({ message: z.string() })),
  next: z.string().nullable(),
});
export type RepairedPage = z.output<typeof RepairedPage>;
