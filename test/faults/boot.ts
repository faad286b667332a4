/**
 * One platform and its state directory, through every boot. Its processes have their own process group, which no Ctrl-C
 * reaches: the end of the suite ends them.
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { makeThrowAwayDirectory } from "../../src/local/state-directory.ts";
import { deathOf, endGroup, type Served, serve } from "../local/served-platform.ts";

const PLATFORM = join(import.meta.dirname, "platform-main.ts");
/** Plans have 24 to 64 rollouts at once: six to sixteen gatherers. */
const GATHERED_ABOVE = "8";
const open = new Set<Boot>();

interface Setup {
  readonly databases: number;
  readonly gathered: boolean;
}

export class Boot {
  readonly directory = makeThrowAwayDirectory();
  readonly #port: number;
  readonly #knobs: string;
  readonly #gathered: boolean;
  readonly #databases: number;
  readonly #said = new Set<() => string>();
  served: Served | null = null;

  /**
   * `knobs`: their URL; empty for a platform without faults. `databases`: how many D1 databases it has. `gathered`: runs
   * of any size have gatherers.
   */
  constructor(port: number, knobs: string, { databases = 1, gathered = false }: Partial<Setup> = {}) {
    this.#port = port;
    this.#knobs = knobs;
    this.#databases = databases;
    this.#gathered = gathered;
    open.add(this);
  }

  readonly start = async (): Promise<Served> => {
    const shape = [String(this.#databases), ...(this.#gathered ? [GATHERED_ABOVE] : [])];
    const script = [PLATFORM, this.directory, String(this.#port), this.#knobs, ...shape];
    this.served = await serve(this.directory, this.#port, script);
    this.#said.add(this.served.said);
    return this.served;
  };

  /** Faults of one kind that happened inside the Worker. */
  faults(kind: string): number {
    return this.#noted().filter(([, noted]) => noted === kind).length;
  }

  /** How many messages of each queue met a fault. */
  faultsOfQueues(): Record<string, number> {
    const names = this.#noted().flatMap(([, , queue]) => queue ?? []);
    return Object.fromEntries(
      [...new Set(names)].toSorted().map((name) => [name, names.filter((one) => one === name).length]),
    );
  }

  #noted(): string[][] {
    const lines = [...this.#said].flatMap((said) => said().split("\n"));
    return lines.map((line) => line.split(" ")).filter(([first]) => first === "fault");
  }

  lastWords(): string {
    return this.served?.said().slice(-4000) ?? "nothing";
  }

  async end(): Promise<void> {
    if (this.served !== null) {
      endGroup(this.served);
      await deathOf(this.served.workerd);
    }
    rmSync(this.directory, { recursive: true, force: true });
    open.delete(this);
  }
}

export async function endBoots(): Promise<void> {
  await Promise.all([...open].map((boot) => boot.end()));
}
