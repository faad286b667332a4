/**
 * Reads the trajectories of scoring groups within the memory that scoring has in this isolate.
 *
 * Invariants. Nothing is read without memory for it. One scoring group at a time may be larger than that. A consumer that
 * gets no memory does not wait: it gives its scoring groups back for a while, which is neither a try nor a failure.
 */
import type { Trajectory } from "../../contract/trajectory.ts";
import type { Growing } from "../kit/fair-semaphore.ts";
import { BYTES_PER_CHARACTER, isolateMemory } from "../kit/isolate-memory.ts";
import type { Subrequests } from "../kit/subrequests.ts";
import type { RunSpec, ScoringGroup } from "../messages/wire.ts";
import { trajectoriesOf } from "./scoring-pass.ts";

/** A scoring group that was given back is taken again after this time. */
export const NO_MEMORY_MS = 5000;

/** The size of a trajectory if a run of an earlier release does not state it. */
const UNKNOWN = 64 * 1024;

/** The trajectories do not fit into memory; a later try may succeed. */
export class NoMemoryError extends Error {
  override readonly name = "NoMemoryError";
}

/** Memory for the trajectories of these scoring groups of a run; null if there is none now. */
export function trajectoryMemory(
  env: Env,
  { scope, run_id }: Pick<RunSpec, "scope" | "run_id">,
  scoringGroups: readonly ScoringGroup[],
): Growing | null {
  const members = scoringGroups.flatMap((scoringGroup) => scoringGroup.members);
  const characters = members.reduce((sum, { bytes, text }) => sum + (bytes ?? text?.length ?? UNKNOWN), 0);
  const { trajectories } = isolateMemory(env);
  const id = `${run_id}/${scoringGroups[0]?.unit}`;
  return trajectories.take(scope.orgId, Date.now(), characters * BYTES_PER_CHARACTER, id);
}

/** Memory of the messages that one invocation handles side by side: one that gets none waits for the others. */
export class BatchMemory {
  #held = 0;
  #waiting: (() => void)[] = [];

  /**
   * Calls `take` until it returns memory. Each time it returns null, waits until another message of the batch gives memory
   * back. Returns null if no message of the batch holds memory.
   */
  async take(take: () => Growing | null): Promise<Growing | null> {
    for (;;) {
      const memory = take();
      if (memory !== null) {
        this.#held += 1;
        return { ...memory, leave: () => this.#left(memory) };
      }
      if (this.#held === 0) return null;
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  #left(memory: Growing): void {
    memory.leave();
    this.#held -= 1;
    for (const wake of this.#waiting.splice(0)) wake();
  }
}

/** The trajectories of one scoring group, which are read again after they were dropped. */
export class HeldTrajectories {
  readonly #read: () => Promise<Trajectory[]>;
  readonly #enter: () => Growing | null;
  #memory: Growing | null = null;
  #trajectories: Trajectory[] | null = null;

  constructor(env: Env, spec: RunSpec, scoringGroup: ScoringGroup, subrequests: Subrequests) {
    this.#read = () => trajectoriesOf(env, spec, scoringGroup, subrequests);
    this.#enter = () => trajectoryMemory(env, spec, [scoringGroup]);
  }

  /** Throws NoMemoryError if they do not fit into memory. */
  async read(): Promise<Trajectory[]> {
    this.#memory ??= this.#enter();
    if (this.#memory === null) throw new NoMemoryError("not enough memory for the trajectories");
    this.#trajectories ??= await this.#read();
    return this.#trajectories;
  }

  drop(): void {
    this.#memory?.leave();
    this.#memory = null;
    this.#trajectories = null;
  }
}
