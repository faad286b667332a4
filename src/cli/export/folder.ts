/**
 * The folder of an export: files that appear only when complete, and a manifest that is written last.
 *
 * Invariants: `manifest.json` exists only when everything else does, and lists it. Until then `manifest.json.partial`
 * identifies the export, so that no other export is mixed with it. Every other file gets its name once all of it is
 * written.
 */
import { createHash } from "node:crypto";
import {
  createReadStream,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { usageError } from "../exit.ts";
import { goOnWritingLines, writeLines } from "../json-lines.ts";

const MANIFEST = "manifest.json";
const LINE_BREAK = 10;

/** What is exported: a whole organisation, or one of its projects. */
export interface Identity {
  readonly organization: string;
  readonly project: string | null;
}

export interface FileEntry {
  readonly path: string;
  readonly bytes: number;
  readonly sha256: string;
}

export class ExportFolder {
  readonly directory: string;
  readonly #files = new Set<string>();

  /** Begins an export in an empty folder, or continues the one that was begun there. Throws for any other folder. */
  constructor(directory: string, identity: Identity) {
    this.directory = directory;
    const begun = join(directory, `${MANIFEST}.partial`);
    mkdirSync(directory, { recursive: true });
    if (existsSync(join(directory, MANIFEST))) {
      throw usageError(`${directory} already has a complete export; choose another folder`);
    }
    const text = `${JSON.stringify({ ...identity })}\n`;
    if (!existsSync(begun)) {
      if (readdirSync(directory).length > 0) {
        throw usageError(`${directory} is not empty and has no started export; choose another folder`);
      }
      writeFileSync(begun, text);
    } else if (readFileSync(begun, "utf8") !== text) {
      throw usageError(`${directory} has an export of something else; choose another folder`);
    }
  }

  at(path: string): string {
    return join(this.directory, path);
  }

  /** True if the complete file exists; it is then part of the export. */
  keeps(path: string): boolean {
    const there = existsSync(this.at(path));
    if (there) this.#files.add(path);
    return there;
  }

  /** True if the file holds exactly this value. */
  holds(path: string, value: unknown): boolean {
    return this.keeps(path) && readFileSync(this.at(path), "utf8") === textOf(value);
  }

  writeJson(path: string, value: unknown): void {
    const file = this.#make(path);
    writeFileSync(`${file}.partial`, textOf(value));
    renameSync(`${file}.partial`, file);
  }

  /** Returns the number of lines. */
  async writeLines(path: string, rows: AsyncIterable<object>): Promise<number> {
    return await writeLines(rows, this.#make(path), "output");
  }

  /** Appends `rows` after the lines that `linesLeft` found. */
  async goOnWithLines(path: string, rows: AsyncIterable<object>): Promise<number> {
    return await goOnWritingLines(rows, this.#make(path), "output");
  }

  /** The complete lines of a file that an earlier attempt left, and the last of them. Cuts off an incomplete line. */
  async linesLeft(path: string): Promise<{ readonly count: number; readonly last: string | null }> {
    const partial = `${this.at(path)}.partial`;
    if (!existsSync(partial)) return { count: 0, last: null };
    let [count, at, end, lastStart] = [0, 0, 0, 0];
    for await (const chunk of createReadStream(partial)) {
      const bytes: Buffer = chunk;
      for (let found = bytes.indexOf(LINE_BREAK); found >= 0; found = bytes.indexOf(LINE_BREAK, found + 1)) {
        [lastStart, end] = [end, at + found + 1];
        count += 1;
      }
      at += bytes.length;
    }
    truncateSync(partial, end);
    if (count === 0) return { count, last: null };
    return { count, last: await textBetween(partial, lastStart, end) };
  }

  /** Removes what an earlier attempt wrote under this path. */
  remove(path: string): void {
    rmSync(this.at(path), { recursive: true, force: true });
    for (const file of this.#files) if (file.startsWith(path)) this.#files.delete(file);
  }

  /** Ends the export: writes the manifest, with the size and digest of every file and the fields of `summary`. */
  async finish<T extends object>(summary: T): Promise<T & { readonly files: readonly FileEntry[] }> {
    const files: FileEntry[] = [];
    for (const path of [...this.#files].sort()) files.push(await this.#entry(path));
    const manifest = { ...summary, files };
    this.writeJson(MANIFEST, manifest);
    rmSync(this.at(`${MANIFEST}.partial`), { force: true });
    return manifest;
  }

  #make(path: string): string {
    const file = this.at(path);
    mkdirSync(dirname(file), { recursive: true });
    this.#files.add(path);
    return file;
  }

  async #entry(path: string): Promise<FileEntry> {
    const hash = createHash("sha256");
    for await (const chunk of createReadStream(this.at(path))) hash.update(chunk);
    return { path, bytes: statSync(this.at(path)).size, sha256: hash.digest("hex") };
  }
}

function textOf(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

/** The text from byte `start` up to `end`. */
async function textBetween(file: string, start: number, end: number): Promise<string> {
  const parts: Buffer[] = [];
  for await (const chunk of createReadStream(file, { start, end: end - 1 })) parts.push(chunk);
  return Buffer.concat(parts).toString("utf8");
}
