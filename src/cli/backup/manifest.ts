/** What a backup consists of. Lists are blobs with one JSON value a line, since there may be millions of entries. */
import * as z from "zod";
import { ObjectKind } from "../../backup/wire.ts";

const Sha256 = z.string().regex(/^[0-9a-f]{64}$/);

/** Written last: a backup without it is incomplete. */
export const Manifest = z.object({
  /** The second: it has rows of several D1 databases. */
  format: z.enum(["rollcall-backup-1", "rollcall-backup-2"]),
  /** The version of Rollcall that made it, and when (RFC 3339). */
  release: z.string(),
  made_at: z.string(),
  /** The newest migration of the database, and the name of the secret: a restore needs the same. */
  schema: z.string(),
  secret: z.string(),
  /** Blobs with the pages of each table, in the order in which they are restored. `database`: its number; absent: 0. */
  tables: z.array(z.object({ database: z.int().min(0).optional(), name: z.string(), pages: z.array(Sha256) })),
  /** Blobs of lists of `CopiedObject` and of `CopiedFile`. */
  objects: z.array(Sha256),
  files: z.array(Sha256),
});
export type Manifest = z.output<typeof Manifest>;

/** An object, its alarm in epoch milliseconds, and the blobs with the pages of its storage. */
export const CopiedObject = z.object({
  kind: ObjectKind,
  name: z.string(),
  alarm: z.number().nullable(),
  pages: z.array(Sha256),
});
export type CopiedObject = z.output<typeof CopiedObject>;

/** An object of the bucket, in blobs of `PART_BYTES`; the last may be shorter. */
export const CopiedFile = z.object({ key: z.string(), size: z.number(), parts: z.array(Sha256) });
export type CopiedFile = z.output<typeof CopiedFile>;
