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

/** As an engine that names its weights is told to name these: no other run's have the same name. */
export function labelOf({ run_id, generation, version }: Weights): string {
  return `${run_id.replace(/^run_/, "")}.g${generation}@${version}`;
}

/** Whether an engine that says this has these. Whoever updates it himself may name them by their number alone. */
export function isLabelOf(label: string | null, weights: Weights): boolean {
  return label === labelOf(weights) || label === String(weights.version);
}

/** Whether a label is a name of ours or a number. What an engine was started with it names in words of its own. */
export function namesVersion(label: string): boolean {
  return /^\d{1,15}$/.test(label) || /^[0-9a-z]+\.g\d+@\d+$/.test(label);
}

/** How a reply names its weights, where that names a version, and not these; else null. */
export function contradicted(label: string | null | undefined, weights: Weights | null): string | null {
  if (weights === null || label === null || label === undefined) return null;
  return namesVersion(label) && !isLabelOf(label, weights) ? label : null;
}

export function isSameWeights(one: Weights, other: Weights): boolean {
  return one.run_id === other.run_id && one.generation === other.generation && one.version === other.version;
}
