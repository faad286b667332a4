/** A gatherer of a run (src/kernel/run/gatherer.ts): it sends the calls of many callers to the run's object in one. */
import { gatherWaitMs } from "../../src/kernel/kit/gather-wait.ts";
import { CALLS_TOGETHER } from "../../src/kernel/run/gathering.ts";
import type { World } from "./world.ts";

export interface GatheredModelCall {
  /** At the run's object. */
  readonly effect: () => void;
  /** At the caller. */
  readonly replied?: () => void;
}

export class GathererModel {
  readonly #world: World;
  readonly #meter;
  readonly #arrive: () => void;
  #waiting: GatheredModelCall[] = [];
  #sentAt = Number.NEGATIVE_INFINITY;
  #soon = false;

  /** `arrive`: a request arrives at the run's object. */
  constructor(world: World, arrive: () => void) {
    this.#world = world;
    this.#meter = world.traffic.meter("gatherer");
    this.#arrive = arrive;
  }

  /** A call arrives here. */
  gather(call: GatheredModelCall): void {
    const { agenda, traffic } = this.#world;
    traffic.request("gatherer", this.#meter, agenda.now);
    this.#waiting.push(call);
    if (this.#waiting.length >= CALLS_TOGETHER) this.#send();
    else if (!this.#soon) {
      this.#soon = true;
      agenda.in(gatherWaitMs(agenda.now - this.#sentAt), () => this.#send());
    }
  }

  #send(): void {
    const { agenda } = this.#world;
    this.#soon = false;
    const calls = this.#waiting.splice(0);
    if (calls.length === 0) return;
    this.#sentAt = agenda.now;
    agenda.in(this.#world.latency.request / 2, () => {
      this.#arrive();
      for (const { effect } of calls) effect();
    });
    // Back here, and from here to the callers.
    agenda.in(this.#world.latency.request * 1.5, () => {
      for (const { replied } of calls) replied?.();
    });
  }
}
