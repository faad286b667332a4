/**
 * Copies a deployment into a bucket while it works.
 *
 * Invariants. The rows of the database are copied first, so everything that they name is copied after them. The ledger is
 * copied before the runs, since a run sends the ledger again what it lacks. The shards of a run are copied before the
 * run, which starts again what a shard does not have. A run is copied with the trajectories that it names, which may be
 * deleted soon. The manifest is written last.
 */
import {
  DeploymentState,
  FilesPage,
  OBJECT_KINDS,
  type ObjectKind,
  ObjectsPage,
  PART_BYTES,
  RowsPage,
  StoragePage,
  type StoredFile,
} from "../../backup/wire.ts";
import { rollcallVersion } from "../../local/package-root.ts";
import type { Blobs } from "./blobs.ts";
import { ListWriter } from "./lists.ts";
import type { CopiedFile, CopiedObject, Manifest } from "./manifest.ts";
import type { OperatorClient } from "./operator-client.ts";
import { StepFailed } from "./step-failed.ts";

/** How often an object that changes while it is copied is copied again. */
const COPIES = 10;

export interface BackedUp {
  readonly tables: number;
  readonly rows: number;
  readonly objects: number;
  readonly files: number;
  readonly bytes: number;
  /** Blobs that were stored now, and those that the bucket had. */
  readonly stored: number;
  readonly found: number;
}

export async function backUp(
  from: OperatorClient,
  blobs: Blobs,
  now: Date,
  log: (line: string) => void,
): Promise<BackedUp> {
  return await new Backup(from, blobs, log).make(now);
}

/** The first page of a storage, the blobs of all pages, and the files that were copied because it names them. */
interface Copied {
  readonly page: StoragePage;
  readonly pages: readonly string[];
}

class Backup {
  readonly #from: OperatorClient;
  readonly #blobs: Blobs;
  readonly #log: (line: string) => void;
  readonly #objects: ListWriter<CopiedObject>;
  readonly #files: ListWriter<CopiedFile>;
  /** Files that were copied with a run. */
  readonly #early = new Set<string>();
  readonly #counts = { rows: 0, objects: 0, files: 0, bytes: 0 };

  constructor(from: OperatorClient, blobs: Blobs, log: (line: string) => void) {
    this.#from = from;
    this.#blobs = blobs;
    this.#log = log;
    this.#objects = new ListWriter(blobs);
    this.#files = new ListWriter(blobs);
  }

  async make(now: Date): Promise<BackedUp> {
    const state = await this.#from.read("", {}, DeploymentState);
    const { schema, secret, restoring, tables: names, databases = 1 } = state;
    if (restoring !== null) throw new StepFailed(`${this.#from.url}: a restore into it is not complete`);
    if (schema === null) throw new StepFailed(`${this.#from.url}: its database is empty`);
    const tables: Manifest["tables"] = [];
    for (let database = 0; database < databases; database += 1) {
      const number = database === 0 ? {} : { database };
      for (const name of names) tables.push({ ...number, name, pages: await this.#rows(name, database) });
    }
    this.#log(`${this.#counts.rows} rows of ${tables.length} tables`);
    for (const kind of OBJECT_KINDS) {
      for (let database = 0; database < databases; database += 1) await this.#kind(kind, database);
    }
    this.#log(`${this.#counts.objects} objects`);
    await this.#allFiles();
    this.#log(`${this.#counts.files} files, ${this.#counts.bytes} bytes`);
    const manifest: Manifest = {
      ...{
        format: databases === 1 ? ("rollcall-backup-1" as const) : ("rollcall-backup-2" as const),
        release: rollcallVersion(),
        made_at: now.toISOString(),
        schema,
        secret,
        tables,
      },
      ...{ objects: [...(await this.#objects.end())], files: [...(await this.#files.end())] },
    };
    await this.#blobs.writeManifest(manifest);
    const { stored, found } = this.#blobs;
    return { tables: tables.length, ...this.#counts, stored, found };
  }

  async #rows(table: string, database: number): Promise<string[]> {
    const pages: string[] = [];
    for (let after: number | null = 0; after !== null; ) {
      const page: RowsPage = await this.#from.read("/rows", { database, table, after }, RowsPage);
      pages.push(await this.#blobs.add(page.text));
      this.#counts.rows += page.text.split("\n").length - 2;
      after = page.next;
    }
    return pages;
  }

  async #kind(kind: (typeof OBJECT_KINDS)[number], database: number): Promise<void> {
    for (let after: number | null = 0; after !== null; ) {
      const page: ObjectsPage = await this.#from.read("/objects", { database, kind, after }, ObjectsPage);
      for (const { name, trains } of page.objects) {
        if (kind === "run") await this.#run(name, trains);
        else await this.#note(kind, name, await this.#storage(kind, name));
      }
      after = page.next;
    }
  }

  /** The trainer's object comes after its run, since it accepts a batch twice. */
  async #run(name: string, trains: boolean): Promise<void> {
    const { needs } = await this.#page("run", name, null);
    for (const shard of needs.shards) {
      await this.#note("shard", `${name}/${shard}`, await this.#storage("shard", `${name}/${shard}`));
    }
    await this.#note("run", name, await this.#storage("run", name));
    if (trains) await this.#note("trainer", name, await this.#storage("trainer", name));
  }

  async #note(kind: ObjectKind, name: string, { page: { alarm, text, next }, pages }: Copied): Promise<void> {
    // It was never created.
    if (text === "" && next === null && alarm === null) return;
    await this.#objects.add({ kind, name, alarm, pages: [...pages] });
    this.#counts.objects += 1;
  }

  /** A copy of one state of the object, with the files that it names. */
  async #storage(kind: ObjectKind, name: string): Promise<Copied> {
    for (let tries = 0; tries < COPIES; tries += 1) {
      const copied = await this.#copy(kind, name);
      if (copied !== null && (await this.#copyNeeded(copied.page))) return copied;
    }
    throw new StepFailed(
      `${kind} ${name} changes all the time and is too large to be copied at one moment: repeat the command, or first pause its runs, or stop what starts them and wait until they end`,
    );
  }

  /** Null if it changed in between. */
  async #copy(kind: ObjectKind, name: string): Promise<Copied | null> {
    const page = await this.#page(kind, name, null);
    const pages = [await this.#blobs.add(page.text)];
    for (let { next } = page; next !== null; ) {
      const more = await this.#page(kind, name, next);
      if (more.state !== page.state) return null;
      pages.push(await this.#blobs.add(more.text));
      next = more.next;
    }
    return { page, pages };
  }

  /** False if one of the files is gone: then the object names another by now. */
  async #copyNeeded({ needs }: StoragePage): Promise<boolean> {
    for (const key of needs.files) {
      if (this.#early.has(key)) continue;
      const file = await this.#file(key, null);
      if (file === null) return false;
      this.#early.add(key);
      await this.#noteFile(file);
    }
    return true;
  }

  #page(kind: ObjectKind, name: string, after: string | null): Promise<StoragePage> {
    return this.#from.read("/storage", { kind, name, ...(after !== null && { after }) }, StoragePage);
  }

  async #allFiles(): Promise<void> {
    for (let after: string | null = ""; after !== null; ) {
      const page: FilesPage = await this.#from.read("/files", after === "" ? {} : { after }, FilesPage);
      for (const listed of page.files) {
        if (this.#early.has(listed.key)) continue;
        const file = await this.#file(listed.key, listed);
        // It was deleted since.
        if (file !== null) await this.#noteFile(file);
      }
      after = page.next;
    }
  }

  async #noteFile(file: CopiedFile): Promise<void> {
    await this.#files.add(file);
    this.#counts.files += 1;
    this.#counts.bytes += file.size;
  }

  /** Null if it does not exist. */
  async #file(key: string, listed: Pick<StoredFile, "size" | "sha256"> | null): Promise<CopiedFile | null> {
    const sha256 = listed?.sha256 ?? null;
    if (listed !== null && sha256 !== null && listed.size <= PART_BYTES && (await this.#blobs.has(sha256))) {
      return { key, size: listed.size, parts: [sha256] };
    }
    const parts: string[] = [];
    let size = listed?.size ?? Number.POSITIVE_INFINITY;
    for (let read = 0; read < size; read += PART_BYTES) {
      const part = await this.#from.part(key, read);
      if (part === null) return null;
      parts.push(await this.#blobs.add(part.bytes));
      size = part.size;
    }
    return { key, size, parts };
  }
}
