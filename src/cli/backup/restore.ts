/**
 * Restores a backup into an empty deployment.
 *
 * Invariants. Files come first, then objects, then rows, so what is restored later finds what it names. No object does
 * anything by itself before all rows are there. A restore that was interrupted is continued by the same command, and
 * only by the same backup. Once an object was started, nothing is written again: it may have changed rows and objects.
 */
import { createHash } from "node:crypto";
import * as z from "zod";
import {
  DeploymentState,
  FilesPage,
  PART_BYTES,
  RestoreBegun,
  STARTED_AT_ONCE,
  type StartedObjects,
} from "../../backup/wire.ts";
import type { Blobs } from "./blobs.ts";
import { readList } from "./lists.ts";
import { CopiedFile, CopiedObject, Manifest } from "./manifest.ts";
import type { OperatorClient } from "./operator-client.ts";
import { StepFailed } from "./step-failed.ts";

/** What this call restored; zeros if an earlier one had written everything. */
export interface Restored {
  readonly made_at: string;
  readonly files: number;
  readonly objects: number;
  readonly tables: number;
}

export async function restoreBackup(
  into: OperatorClient,
  blobs: Blobs,
  log: (line: string) => void,
): Promise<Restored> {
  const manifest = await blobs.readManifest(Manifest);
  if (manifest === null) throw new StepFailed("the backup is not complete: it has no manifest.json");
  const state = await into.read("", {}, DeploymentState);
  refuseOther(manifest, state);
  const of = createHash("sha256").update(JSON.stringify(manifest)).digest("hex").slice(0, 16);
  const { left } = await into.ask("/begin", { of }, undefined, RestoreBegun);
  const restore = { into, blobs, of };
  const written =
    left === "everything" ? await writeEverything(restore, manifest, log) : { files: 0, objects: 0, tables: 0 };
  if (left === "nothing") log("this backup is restored already");
  else {
    await startObjects(restore, manifest);
    await into.write("/end", { of });
  }
  return { made_at: manifest.made_at, ...written };
}

interface Restore {
  readonly into: OperatorClient;
  readonly blobs: Blobs;
  /** The name of the backup. */
  readonly of: string;
}

async function writeEverything(
  restore: Restore,
  manifest: Manifest,
  log: (line: string) => void,
): Promise<Omit<Restored, "made_at">> {
  const { into, blobs, of } = restore;
  const files = await restoreFiles(restore, manifest);
  log(`${files} files`);
  const objects = await restoreObjects(restore, manifest);
  log(`${objects} objects`);
  for (const { database = 0, name, pages } of manifest.tables) {
    for (const [number, page] of pages.entries()) {
      await into.write("/rows", { of }, { database, table: name, first: number === 0, text: await blobs.text(page) });
    }
  }
  log(`${manifest.tables.length} tables`);
  return { files, objects, tables: manifest.tables.length };
}

function refuseOther(manifest: Manifest, { schema, secret, databases: has = 1 }: DeploymentState): void {
  const needs = 1 + Math.max(0, ...manifest.tables.map(({ database = 0 }) => database));
  if (has < needs) {
    throw new StepFailed(
      `the backup has rows of ${needs} D1 databases, and the deployment has ${has}: deploy it with --databases ${needs}`,
    );
  }
  if (secret !== manifest.secret) {
    throw new StepFailed(
      "the backup is of a deployment with another ROLLCALL_SECRET: without that, nothing in it opens",
    );
  }
  if (schema !== manifest.schema) {
    throw new StepFailed(
      `the backup has the schema ${manifest.schema} of release ${manifest.release}, and the deployment has ${schema ?? "none"}: deploy that release, restore, then upgrade`,
    );
  }
}

async function restoreFiles(restore: Restore, manifest: Manifest): Promise<number> {
  const there = await filesThere(restore.into);
  let count = 0;
  for await (const file of readList(restore.blobs, manifest.files, CopiedFile)) {
    count += 1;
    // A file is written at once, whatever its size.
    if (there.get(file.key) !== file.size) await restoreFile(restore, file);
  }
  return count;
}

/** The sizes of the files that an interrupted restore has written. */
async function filesThere(into: OperatorClient): Promise<Map<string, number>> {
  const sizes = new Map<string, number>();
  for (let after: string | null = ""; after !== null; ) {
    const page: FilesPage = await into.read("/files", after === "" ? {} : { after }, FilesPage);
    for (const { key, size } of page.files) sizes.set(key, size);
    after = page.next;
  }
  return sizes;
}

const EMPTY_SHA256 = createHash("sha256").digest("hex");
const Upload = z.object({ upload: z.string() });
const Part = z.object({ partNumber: z.int(), etag: z.string() });

async function restoreFile({ into, blobs, of }: Restore, { key, size, parts }: CopiedFile): Promise<void> {
  const [first] = parts;
  if (size <= PART_BYTES) {
    const content = first === undefined ? new Uint8Array() : await blobs.get(first);
    await into.put("/file", { of, key, sha256: first ?? EMPTY_SHA256 }, content);
    return;
  }
  const { upload } = await into.ask("/upload", { of, key }, undefined, Upload);
  const uploaded: z.output<typeof Part>[] = [];
  for (const [number, part] of parts.entries()) {
    const reply = await into.put("/part", { of, key, upload, part: number + 1 }, await blobs.get(part));
    uploaded.push(Part.parse(await reply.json()));
  }
  await into.write("/uploaded", { of, key, upload }, { parts: uploaded });
}

const Written = z.object({ written: z.boolean() });

async function restoreObjects({ into, blobs, of }: Restore, manifest: Manifest): Promise<number> {
  let count = 0;
  for await (const { kind, name, pages } of readList(blobs, manifest.objects, CopiedObject)) {
    count += 1;
    for (const [number, page] of pages.entries()) {
      const place = { kind, name, of, first: number === 0, last: number === pages.length - 1 };
      const { written } = await into.ask("/storage", { of }, { ...place, text: await blobs.text(page) }, Written);
      if (!written) break;
    }
  }
  return count;
}

/** From now on their alarms run. */
async function startObjects({ into, blobs, of }: Restore, manifest: Manifest): Promise<void> {
  let some: StartedObjects["objects"] = [];
  for await (const { kind, name, alarm } of readList(blobs, manifest.objects, CopiedObject)) {
    some = [...some, { kind, name, alarm }];
    if (some.length < STARTED_AT_ONCE) continue;
    await into.write("/start", { of }, { objects: some });
    some = [];
  }
  if (some.length > 0) await into.write("/start", { of }, { objects: some });
}
