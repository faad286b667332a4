/** What the pages of an export left out, added up and said. */
import { LEFT_OUT } from "../../contract/export.ts";
import type { LeftOutNote } from "../../sdk/client.ts";
import { countText } from "../terminal/format.ts";

/** Ids one message names. */
const NAMED = 5;

export class LeftOutTally {
  readonly #reasons = new Map<string, number>();
  readonly #rollouts: string[] = [];
  #rows = 0;

  add({ rows, reasons, rollouts }: LeftOutNote): void {
    this.#rows += rows;
    for (const [reason, count] of Object.entries(reasons)) {
      this.#reasons.set(reason, (this.#reasons.get(reason) ?? 0) + count);
    }
    this.#rollouts.push(...rollouts.slice(0, NAMED - this.#rollouts.length));
  }

  /** For the object of --json; null where nothing was left out. */
  asJson(): LeftOutNote | null {
    if (this.#rows === 0) return null;
    return {
      rows: this.#rows,
      reasons: Object.fromEntries(this.#reasons),
      rollouts: this.#rollouts,
    };
  }

  /** A line a reason and one of ids; none where nothing was left out. */
  lines(): string[] {
    if (this.#rows === 0) return [];
    const why = Array.from(this.#reasons, ([reason, count]) => {
      return `${countText(count)} left out: ${meaningOf(reason)}`;
    });
    const more = this.#rows > this.#rollouts.length ? ", …" : "";
    return [...why, `of ${this.#rollouts.join(", ")}${more}`];
  }
}

/** A newer platform may have more reasons. */
function meaningOf(reason: string): string {
  return Object.entries(LEFT_OUT).find(([name]) => name === reason)?.[1] ?? reason;
}
