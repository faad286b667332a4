/** Weights and how they are identified. Pure. */

/** Weights that a training run published. */
export interface Weights {
  readonly run_id: string;
  readonly generation: number;
  readonly version: number;
}

/** `start`: the weights that the server was started with, which are version 0 of any run. Null: unknown. */
export type Holds = Weights | "start" | null;

/** How a server is recognised: its process, and the label of its weights. Null: not reported. */
export interface Proof {
  readonly process: string | null;
  readonly label: string | null;
}

/** The label that an engine is given for these weights. It is unique over all runs. */
export function labelOf({ run_id, generation, version }: Weights): string {
  return `${run_id.replace(/^run_/, "")}.g${generation}@${version}`;
}

/** Whether this label means these weights. Another party that updates the engine may use the bare version number. */
export function isLabelOf(label: string | null, weights: Weights): boolean {
  return label === labelOf(weights) || label === String(weights.version);
}

/** Whether a label is one of Rollcall's labels or a number. An engine names its initial weights in its own words. */
export function namesVersion(label: string): boolean {
  return /^\d{1,15}$/.test(label) || /^[0-9a-z]+\.g\d+@\d+$/.test(label);
}

/** The label of a reply, if it names a version other than these weights; otherwise null. */
export function contradicted(label: string | null | undefined, weights: Weights | null): string | null {
  if (weights === null || label === null || label === undefined) return null;
  return namesVersion(label) && !isLabelOf(label, weights) ? label : null;
}

export function isSameWeights(one: Weights, other: Weights): boolean {
  return one.run_id === other.run_id && one.generation === other.generation && one.version === other.version;
}
