/**
 * Reports when files below some folders change. An editor may write files, replace them, or create folders.
 *
 * Invariants. A burst of changes is reported once, when it is over. A change after `next` has resolved is reported by
 * the following call of `next`: the folders are watched again before it resolves. Nothing is polled.
 */
import { existsSync, type FSWatcher, watch } from "node:fs";
import { dirname } from "node:path";
import { foldersBelow } from "./environment-package.ts";

/** Longer than the time between two writes when an editor saves several files. */
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

  /** Resolves after the first change that no earlier call has reported. */
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
      // A folder that is gone may come back.
      existsSync(folder) ? foldersBelow(folder) : [dirname(folder)],
    );
    this.#watchers = watched.map((folder) => {
      // A removed folder reports its removal once more, as an error.
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
