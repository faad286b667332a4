/**
 * The version of an organisation's settings, by which isolates find out whether what they keep of D1 is current
 * (kernel/kit/settings-cache.ts). The audit object has it, because it has an entry of every change before it begins.
 *
 * Invariants. The version differs after each change. While a change is in progress there is none. A change whose end is
 * not known, because a process was killed, counts as in progress for `CHANGE_MS`, also in a later instance: that time is
 * on disk before the change begins. An instance never has a version of an earlier one, so nothing else is on disk.
 */

/** No change takes longer. */
export const CHANGE_MS = 10 * 60_000;
const ROW = "settings_change_until";
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

export class SettingsVersion {
  readonly #kv: SyncKvStorage;
  readonly #instance = crypto.randomUUID();
  #changes = 0;
  /** Changes without an end by their entry, and until when they count as in progress. */
  readonly #followed = new Map<number, number>();
  /** Until when other changes may be in progress: those of earlier instances, and those without an entry. */
  #until: number | undefined;

  constructor(kv: SyncKvStorage) {
    this.#kv = kv;
  }

  /** Null while a change may be in progress. `now`: epoch milliseconds. */
  current(now: number): string | null {
    this.#until ??= this.#kv.get<number>(ROW) ?? 0;
    const until = Math.max(this.#until, ...this.#followed.values());
    return until > now ? null : `${this.#instance}/${this.#changes}`;
  }

  /**
   * Notes a change before it begins. `write`: writes its entry, and returns its number; `store` must be part of that
   * write. If it throws, the change may be made without an entry, and counts as in progress.
   */
  begin(now: number, write: (store: () => void) => number): number {
    this.#changes += 1;
    const until = now + CHANGE_MS;
    // What an earlier instance has left must be read before it is replaced.
    this.current(now);
    try {
      const entry = write(() => this.#kv.put(ROW, until));
      this.#follow(entry, until, now);
      return entry;
    } catch (thrown) {
      this.#until = until;
      throw thrown;
    }
  }

  end(entry: number): void {
    // It may have taken longer than any change should.
    if (this.#followed.delete(entry)) this.#changes += 1;
  }

  /** A change was made without an entry. */
  changed(): void {
    this.#changes += 1;
  }

  #follow(entry: number, until: number, now: number): void {
    if (this.#followed.size >= MOST_FOLLOWED) {
      for (const [other, end] of this.#followed) if (end <= now) this.#followed.delete(other);
    }
    if (this.#followed.size >= MOST_FOLLOWED) this.#until = until;
    else this.#followed.set(entry, until);
  }
}
