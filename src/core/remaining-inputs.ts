/** What of an eval is still to be run, given what a results file already holds (verifiers' rules of resuming). */

/**
 * The ids of `inputs` still owed, example by example in the order in which they first come. Each example has `attempts`
 * places; a finished row fills one of its example's, and the first inputs of that example take what is left. Surplus rows
 * and ids that are not asked for change nothing.
 */
export function remainingInputs(inputs: readonly number[], finished: readonly number[], attempts: number): number[] {
  const places = new Map<number, number>();
  for (const id of finished) places.set(id, (places.get(id) ?? attempts) - 1);
  const owed = new Map<number, number[]>();
  for (const id of inputs) {
    const rows = owed.get(id) ?? [];
    if (rows.length < (places.get(id) ?? attempts)) rows.push(id);
    owed.set(id, rows);
  }
  return [...owed.values()].flat();
}
