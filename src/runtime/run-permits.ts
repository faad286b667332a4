/** Asks a run's endpoint for permits when that is due, and keeps what it grants. Never throws, one ask at a time. */
import { logError } from "./log.ts";
import { endpointObject } from "./names.ts";
import { askAt, asking, granted, type Need, paceAt, type RunGate, unasked } from "./run-gate.ts";
import type { RunStore } from "./run-store.ts";
import type { RunSpec } from "./wire.ts";

export class RunPermits {
  readonly #env: Env;
  readonly #store: RunStore;
  readonly #now: () => number;
  #asking = false;

  constructor(env: Env, store: RunStore, now: () => number) {
    this.#env = env;
    this.#store = store;
    this.#now = now;
  }

  /** When the endpoint is next to be asked, or its bucket holds enough for a rollout; null when neither is awaited. */
  nextAt(need: Need): number | null {
    const { gate } = this.#store.head();
    const now = this.#now();
    const ask = this.#asking ? null : askAt(gate, need, now);
    const due = [ask, paceAt(gate, need, now)].filter((at) => at !== null);
    return due.length === 0 ? null : Math.min(...due);
  }

  /** The endpoint would grant something else now. */
  changed(): void {
    this.#save({ ...this.#gate(), changed: true });
  }

  async renew(spec: RunSpec, need: Need): Promise<void> {
    const now = this.#now();
    const at = askAt(this.#gate(), need, now);
    if (this.#asking || at === null || at > now) return;
    this.#asking = true;
    const { outcomes } = this.#gate();
    this.#save(asking(this.#gate(), need, now));
    const { scope, endpoint_id, run_id, model } = spec;
    try {
      const endpoint = endpointObject(this.#env, scope, endpoint_id);
      const grant = await endpoint.ask({ scope, endpoint_id, run_id, model, ...need, outcomes });
      this.#save(granted(this.#gate(), grant, this.#now()));
    } catch (thrown) {
      logError("endpoint does not answer", endpoint_id, thrown);
      this.#save(unasked(this.#gate(), outcomes));
    } finally {
      this.#asking = false;
    }
  }

  #gate(): RunGate {
    return this.#store.head().gate;
  }

  #save(gate: RunGate): void {
    this.#store.saveHead({ ...this.#store.head(), gate });
  }
}
