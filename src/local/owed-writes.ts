/**
 * Small files that say how the platform stands (which workerd runs, where it answers, how the last ones ended), written when
 * that changes. A full disk must not end what is to outlast it: such a write is owed, and tried again until it works.
 */
import { hasCode } from "./directory-lock.ts";

export class OwedWrites {
  readonly #say: (line: string) => void;
  readonly #owed = new Map<string, () => void>();
  #full = false;

  constructor(say: (line: string) => void) {
    this.#say = say;
  }

  /** `file`: what is written; an earlier write of it that is still owed is void. False where there was no room for it. */
  write(file: string, write: () => void): boolean {
    this.#owed.delete(file);
    try {
      write();
    } catch (error) {
      if (!hasCode(error, "ENOSPC")) throw error;
      this.#owed.set(file, write);
      this.isFull();
      return false;
    }
    return true;
  }

  /** Said once, whoever met it first. */
  isFull(): void {
    if (this.#full) return;
    this.#full = true;
    this.#say("The disk is full: nothing is lost, and what runs goes on when there is room.");
  }

  /** The platform wrote something; it is over once nothing is owed here either. */
  hasRoom(): void {
    if (!this.#full || this.#owed.size > 0) return;
    this.#full = false;
    this.#say("There is room on the disk again.");
  }

  /** What is owed is no longer true. */
  drop(file: string): void {
    this.#owed.delete(file);
  }

  /** Tries what is owed once more. */
  retry(): void {
    for (const [file, write] of [...this.#owed]) this.write(file, write);
  }
}
