/** Asks a run's endpoint for permits when that is due, and keeps what it grants. Never throws, one ask at a time. */

import type { PermitAsk } from "../contract/endpoint-wire.ts";
import { logError } from "../kit/log.ts";
import { endpointObject } from "../kit/names.ts";
import { askAt, asking, granted, type Need, paceAt, type RunGate, unasked } from "./run-gate.ts";

/** Where the gate is kept. */
export interface GateSlot {
  readonly read: () => RunGate;
  readonly write: (gate: RunGate) => void;
}

/** Behind a run's id where its judges ask: an endpoint that is the policy's too knows the run twice. */
const JUDGES = "/judges";

export function judgesOf(runId: string): string {
  return `${runId}${JUDGES}`;
}

/** The run that asked, for itself or for its judges. */
export function runOf(asker: string): string {
  return asker.endsWith(JUDGES) ? asker.slice(0, -JUDGES.length) : asker;
}

/** Who asks which endpoint. */
export type Asker = Pick<PermitAsk, "scope" | "endpoint_id" | "run_id" | "model">;

export class RunPermits {
  readonly #env: Env;
  readonly #slot: GateSlot;
  readonly #now: () => number;
  #asking = false;

  constructor(env: Env, slot: GateSlot, now: () => number) {
    this.#env = env;
    this.#slot = slot;
    this.#now = now;
  }

  /** When the endpoint is next to be asked, or its bucket holds enough for a rollout; null when neither is awaited. */
  nextAt(need: Need): number | null {
    const gate = this.#slot.read();
    const now = this.#now();
    const ask = this.#asking ? null : askAt(gate, need, now);
    const due = [ask, paceAt(gate, need, now)].filter((at) => at !== null);
    return due.length === 0 ? null : Math.min(...due);
  }

  /** The endpoint would grant something else now. */
  changed(): void {
    this.#slot.write({ ...this.#slot.read(), changed: true });
  }

  async renew({ scope, endpoint_id, run_id, model }: Asker, need: Need): Promise<void> {
    const now = this.#now();
    const { read, write } = this.#slot;
    const at = askAt(read(), need, now);
    if (this.#asking || at === null || at > now) return;
    this.#asking = true;
    const { outcomes } = read();
    write(asking(read(), need, now));
    try {
      const endpoint = endpointObject(this.#env, scope, endpoint_id);
      const grant = await endpoint.ask({ scope, endpoint_id, run_id, model, ...need, outcomes });
      write(granted(read(), grant, this.#now()));
    } catch (thrown) {
      logError("endpoint does not answer", endpoint_id, thrown);
      write(unasked(read(), outcomes));
    } finally {
      this.#asking = false;
    }
  }
}
