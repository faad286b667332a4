/**
 * Releases the reservations of a run's lost calls when its owner requests it, and writes the amount to the audit log.
 *
 * Invariants. A release and its audit entry are one write, so a kill leaves both or neither. The entry is sent again
 * until the log has it. Work in flight keeps its reservation. A release with nothing reserved changes nothing.
 */
import { releaseReservations } from "../../core/costs/call-budget.ts";
import { accounts } from "../kit/account-hooks.ts";
import { idsOf } from "../kit/log.ts";
import { SingleFlight } from "../kit/single-flight.ts";
import type { Subrequests } from "../kit/subrequests.ts";
import type { RunSpec } from "../messages/wire.ts";
import type { LostReservations } from "./lost-reservations.ts";
import type { RunStore } from "./store.ts";

const OK = 200;

/** `entry`: number of the audit-log entry, which records who released and when. */
export function releaseLostCalls(store: RunStore, entry: number): void {
  store.transaction(() => {
    const head = store.head();
    if (head.cap.lost.calls === 0) return;
    store.lostReservations.release(head.cap.lost, entry);
    store.saveHead({
      ...head,
      cap: { ...head.cap, ...releaseReservations(head.cap), reopens: true, closed: false },
      row_current: false,
    });
  });
}

export class ReleaseNotifier {
  readonly #env: Env;
  readonly #reservations: LostReservations;
  readonly #now: () => number;
  readonly #calls: SingleFlight;

  constructor(env: Env, reservations: LostReservations, now: () => number) {
    this.#env = env;
    this.#reservations = reservations;
    this.#now = now;
    this.#calls = new SingleFlight("releases for the audit log", now);
  }

  /** Epoch milliseconds; null if there is nothing to report. */
  nextAt(): number | null {
    return this.#calls.after(this.#reservations.unnotified === null ? null : this.#now());
  }

  /** Never throws. */
  async tell(spec: RunSpec, subrequests: Subrequests): Promise<void> {
    if (this.#reservations.unnotified === null) return;
    await this.#calls.run(idsOf(spec), async () => {
      const { orgId } = spec.scope;
      for (let next = this.#reservations.unnotified; next !== null; next = this.#reservations.unnotified) {
        const { entry, ...released } = next;
        await subrequests.object(() =>
          accounts().endChange(this.#env, orgId, entry, { status: OK, made: null, released }),
        );
        this.#reservations.forgetRelease(next);
      }
    });
  }
}
