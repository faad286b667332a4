/**
 * The version of an organisation's settings, by which isolates find out whether what they keep of D1 is current
 * (kernel/kit/settings-cache.ts). The audit object has it, because it has an entry of every change before it begins.
 *
 * Invariants. The version differs after each change. While a change is in progress there is none. A change whose end is
 * not known, because a process was killed, counts as in progress for `CHANGE_MS`, also in a later instance, which finds
 * its entry. An instance never has a version of an earlier one, so nothing else is on disk.
 */

/** No change takes longer: to receive its body may take half an hour. */
export const CHANGE_MS = 40 * 60_000;
/** More changes are not followed one by one. */
const MOST_FOLLOWED = 100;

/** What is changed often and is none of the settings that isolates keep. Any other change counts as one of settings. */
export const NO_SETTINGS: ReadonlySet<string> = new Set([
  ...["createRun", "previewRun", "updateRun", "pauseRun", "resumeRun", "cancelRun", "retryRun", "rescoreRun"],
  ...["deleteRun", "releaseLostCalls", "cancelRollout", "forkRollout", "createRollout", "putReview", "deleteReview"],
  ...["createDataset", "deleteDataset", "createDatasetUpload", "completeDatasetUpload", "deleteDatasetUpload"],
  ...[
    "testTrigger",
    "testWebhookEndpoint",
    "createReportLink",
    "deleteReportLink",
    "createSignInCode",
    "receiveDelivery",
  ],
  ...["replayWebhookDelivery", "replayWebhookDeliveries", "publishEnvironment", "moveEnvironmentTag"],
]);

/** `action`: the id of an operation. */
export function changesSettings(action: string): boolean {
  return !NO_SETTINGS.has(action);
}

/** A change without an end. */
export interface OpenChange {
  readonly entry: number;
  /** When it began, in epoch milliseconds. */
  readonly at: number;
}

export interface OpenChanges {
  readonly changes: readonly OpenChange[];
  /** False: there were too many entries to read, so there may be others. */
  readonly all: boolean;
}

export class SettingsVersion {
  readonly #open: (since: number) => OpenChanges;
  readonly #instance = crypto.randomUUID();
  #changes = 0;
  /** Changes without an end by their entry, and until when they count as in progress; null: not read yet. */
  #followed: Map<number, number> | null = null;
  /** Until when other changes may be in progress: those without an entry, and those that are too many to follow. */
  #until = 0;

  /** `open`: reads which changes of settings began after `since` (epoch milliseconds) and have not ended. */
  constructor(open: (since: number) => OpenChanges) {
    this.#open = open;
  }

  /** Null while a change may be in progress. `now`: epoch milliseconds. */
  current(now: number): string | null {
    const until = Math.max(...this.#inProgress(now).values(), this.#until);
    return until > now ? null : `${this.#instance}/${this.#changes}`;
  }

  /**
   * Notes a change before it begins. `write`: writes its entry, and returns its number. If it throws, the change may be
   * made without an entry, and counts as in progress.
   */
  begin(now: number, write: () => number): number {
    this.#changes += 1;
    try {
      const followed = this.#inProgress(now);
      const entry = write();
      this.#follow(followed, entry, now);
      return entry;
    } catch (thrown) {
      this.#until = now + CHANGE_MS;
      throw thrown;
    }
  }

  /** Called before the outcome is written. */
  end(entry: number, now: number): void {
    // It may have taken longer than any change should.
    if (this.#inProgress(now).delete(entry)) this.#changes += 1;
  }

  /** A change was made without an entry. */
  changed(): void {
    this.#changes += 1;
  }

  #inProgress(now: number): Map<number, number> {
    if (this.#followed !== null) return this.#followed;
    const followed = new Map<number, number>();
    const { changes, all } = this.#open(now - CHANGE_MS);
    for (const { entry, at } of changes) this.#follow(followed, entry, Math.min(at, now));
    if (!all) this.#until = now + CHANGE_MS;
    this.#followed = followed;
    return followed;
  }

  #follow(followed: Map<number, number>, entry: number, at: number): void {
    const until = at + CHANGE_MS;
    if (followed.size >= MOST_FOLLOWED) {
      for (const [other, end] of followed) if (end <= at) followed.delete(other);
    }
    if (followed.size >= MOST_FOLLOWED) this.#until = Math.max(this.#until, until);
    else followed.set(entry, until);
  }
}
