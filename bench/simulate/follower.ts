/** A client that follows the events of a run over HTTP: each tick of the run ends a read, and the client reads again. */
import { LOOK_MS } from "../../src/kernel/http/events.ts";
import { SETTINGS_AGE_MS } from "../../src/kernel/kit/caches.ts";
import type { AccountModel } from "./grantors.ts";
import { COSTS } from "./policies.ts";
import type { World } from "./world.ts";

/** Of its key and of its project. */
const READS_OF_LOOK = 2;

export class Follower {
  readonly #world: World;
  readonly #account: AccountModel;
  /** When its key was last read; null: not since its organisation is known. */
  #keyReadAt: number | null = null;
  readonly #read: () => void;
  readonly #isOver: () => boolean;
  #waits = false;
  #news = false;

  /** `read`: called for each request to the run's object. */
  constructor(world: World, account: AccountModel, read: () => void, isOver: () => boolean) {
    this.#world = world;
    this.#account = account;
    world.traffic.count("d1 read: keys of followers", world.agenda.now);
    this.#read = read;
    this.#isOver = isOver;
    this.#look();
    this.#next();
  }

  /** There are events. */
  wake(): void {
    if (!this.#waits) {
      this.#news = true;
      return;
    }
    this.#waits = false;
    this.#world.agenda.in(this.#world.latency.request, () => this.#next());
  }

  /** The stream checks whether its caller still has the permission. */
  #look(): void {
    if (this.#isOver()) return;
    const { agenda, traffic } = this.#world;
    this.#account.askVersion(COSTS.isolate.version_requests);
    if (this.#keyReadAt === null || agenda.now - this.#keyReadAt >= SETTINGS_AGE_MS) {
      this.#keyReadAt = agenda.now;
      traffic.count("d1 read: keys of followers", agenda.now, READS_OF_LOOK);
    }
    agenda.in(LOOK_MS, () => this.#look());
  }

  #next(): void {
    if (this.#isOver()) return;
    this.#read();
    if (!this.#news) {
      this.#waits = true;
      return;
    }
    this.#news = false;
    this.#world.agenda.in(this.#world.latency.request, () => this.#next());
  }
}
