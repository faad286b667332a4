/** The base of every object whose storage a backup copies. */
import { DurableObject } from "cloudflare:workers";
import { StorageCopy, type StoragePage } from "./storage-copy.ts";

/** What a copy of an object's storage needs besides it, as of the same state. */
export interface CopyNeeds {
  /** Keys of R2 that may be deleted soon, although the copied storage names them. */
  readonly files: readonly string[];
  /** The numbers of the shards with unfinished rollouts of a run. */
  readonly shards: readonly number[];
}

export interface StoredPage extends StoragePage {
  /** Epoch milliseconds; null if it has no alarm. */
  readonly alarm: number | null;
  readonly needs: CopyNeeds;
}

/** One page for the copy `of` of an object's storage. */
export interface WrittenPage {
  readonly of: string;
  readonly first: boolean;
  readonly last: boolean;
  readonly text: string;
}

/** The methods by which storage is copied out of an object and into an empty one. */
export interface StorageRpc {
  readStorage(after: string | null): Promise<StoredPage>;
  /** False: the copy is complete already, and nothing was written. */
  writeStorage(page: WrittenPage): Promise<boolean>;
  /** Lets the object work with the storage that was written, from the alarm on. Does nothing if it does already. */
  startCopied(alarm: number | null): Promise<void>;
}

export abstract class StoredObject extends DurableObject<Env> {
  readonly #copy: StorageCopy;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#copy = new StorageCopy(ctx.storage);
  }

  /** What a copy needs besides the storage. */
  protected copyNeeds(): CopyNeeds {
    return { files: [], shards: [] };
  }

  /** Corrects what was written for what is not copied. The object has an alarm. Returns when that is due. */
  protected correctCopied(alarm: number): number {
    return alarm;
  }

  async readStorage(after: string | null): Promise<StoredPage> {
    const alarm = await this.ctx.storage.getAlarm();
    const needs = this.copyNeeds();
    return { ...this.#copy.read(after), alarm, needs };
  }

  async writeStorage({ of, first, last, text }: WrittenPage): Promise<boolean> {
    return await this.#copy.write(of, first, last, text);
  }

  async startCopied(alarm: number | null): Promise<void> {
    if (!this.#copy.isComplete) return;
    if (alarm !== null) await this.ctx.storage.setAlarm(this.correctCopied(alarm));
    this.#copy.end();
    await this.ctx.storage.sync();
    // The instance may have read storage before it was written.
    setTimeout(() => this.ctx.abort("retired"), 0);
  }
}
