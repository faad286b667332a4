/** The result of a run of vectors: a vector passes if it holds in every runtime it was run in. */
import type { Verdict } from "./run-vectors.ts";
import type { VectorFile } from "./vector-file.ts";

export type Runtime = "node" | "workerd";

export interface Report {
  readonly file: string;
  readonly kinds: Readonly<Record<string, { passed: number; total: number }>>;
  readonly passed: number;
  readonly total: number;
  readonly failures: readonly { id: string; kind: string; message: string }[];
  /** Errors of the file's counts, and kinds without a driver, so that nothing passes silently. */
  readonly faults: readonly string[];
}

export function reportOf(
  path: string,
  { vectors }: VectorFile,
  verdicts: ReadonlyMap<Runtime, readonly Verdict[]>,
  faults: readonly string[],
): Report {
  const kinds: Record<string, { passed: number; total: number }> = {};
  const failures: { id: string; kind: string; message: string }[] = [];
  for (const [at, { id, kind }] of vectors.entries()) {
    const message = [...verdicts].flatMap(([runtime, all]) => faultIn(runtime, all[at])).join("; ");
    kinds[kind] ??= { passed: 0, total: 0 };
    kinds[kind].total += 1;
    if (message === "") kinds[kind].passed += 1;
    else failures.push({ id, kind, message });
  }
  const total = vectors.length;
  return { file: path, kinds, passed: total - failures.length, total, failures, faults };
}

export function holds({ failures, faults }: Report): boolean {
  return failures.length === 0 && faults.length === 0;
}

/** For a person: counts by kind, then the failures. */
export function textOf({ kinds, passed, total, failures, faults }: Report): string {
  const width = Math.max(5, ...Object.keys(kinds).map((kind) => kind.length));
  const row = (name: string, count: number, of: number) => `${name.padEnd(width)} ${String(count).padStart(6)} / ${of}`;
  return [
    ...Object.entries(kinds).map(([kind, count]) => row(kind, count.passed, count.total)),
    row("total", passed, total),
    ...failures.map(({ id, kind, message }) => `\n${kind} ${id}: ${message}`),
    ...faults.map((fault) => `\n${fault}`),
  ].join("\n");
}

function faultIn(runtime: Runtime, verdict: Verdict | undefined): string[] {
  if (verdict === undefined) return [`${runtime}: was not run`];
  return verdict.message === null ? [] : [`${runtime}: ${verdict.message}`];
}
