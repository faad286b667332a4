/**
 * Tells when files below some folders change: an editor may write them, replace them, or make new folders.
 *
 * Invariants. A burst of changes is told once, when it is over. Whatever changes after `next` has resolved is told by the
 * next `next`: the folders are watched anew before it resolves. Nothing is polled.
 */
import { existsSync, type FSWatcher, watch } from "node:fs";
import { dirname } from "node:path";
import { foldersBelow } from "./environment-package.ts";

/** An editor that saves several files takes less from one to the next. */
const QUIET_MS = 150;

export class FolderWatch implements Disposable {
  readonly #folders: readonly string[];
  #watchers: FSWatcher[] = [];
  #timer: NodeJS.Timeout | undefined;
  #change = Promise.withResolvers<void>();

  constructor(folders: readonly string[]) {
    this.#folders = folders;
    this.#watch();
  }

  /** Resolves after the first change that no earlier call has told. */
  async next(): Promise<void> {
    await this.#change.promise;
    this.#change = Promise.withResolvers();
    this.#watch();
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#close();
  }

  #watch(): void {
    this.#close();
    const watched = this.#folders.flatMap((folder) =>
      // One that is gone may come back.
      existsSync(folder) ? foldersBelow(folder) : [dirname(folder)],
    );
    this.#watchers = watched.map((folder) => {
      // A folder that is removed says so once more, as an error.
      return watch(folder, () => this.#changed()).on("error", () => this.#changed());
    });
  }

  #close(): void {
    for (const watcher of this.#watchers.splice(0)) watcher.close();
  }

  #changed(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#change.resolve(), QUIET_MS);
  }
}
