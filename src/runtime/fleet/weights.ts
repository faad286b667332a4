/** Weights, and by what they are known. Pure. */

/** Weights that a training run published. */
export interface Weights {
  readonly run_id: string;
  readonly generation: number;
  readonly version: number;
}

/** `start`: what its server was started with, which is version 0 of any run. Null: nobody knows. */
export type Holds = Weights | "start" | null;

/** By what a server is known again: which process it is, and how it names its weights. Null: it does not say. */
export interface Proof {
  readonly process: string | null;
  readonly label: string | null;
}

export function isSameWeights(one: Weights, other: Weights): boolean {
  return one.run_id === other.run_id && one.generation === other.generation && one.version === other.version;
}
