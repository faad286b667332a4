/** How the state of an environment changed from one turn to the next, line by line. Pure. */
import { diffLines } from "diff";

export interface StateLines {
  readonly kind: "same" | "added" | "removed" | "left out";
  /** Of the kind `left out`: the number of lines. */
  readonly text: string;
}

/** The most characters of each state that are compared. */
export const COMPARED = 50_000;
/** In milliseconds: states that take longer have little in common. */
const PATIENCE = 500;
/** Unchanged lines that are shown around a change. */
const AROUND = 3;

/** `before` null: there is nothing to compare with, and all lines are the same. */
export function stateDifference(before: unknown, now: unknown): readonly StateLines[] {
  const text = printed(now);
  if (before === null) return [{ kind: "same", text }];
  const old = printed(before);
  const parts = diffLines(old, text, { timeout: PATIENCE });
  if (parts === undefined) {
    return [
      { kind: "removed", text: old },
      { kind: "added", text },
    ];
  }
  return parts.flatMap(({ value, added, removed }, at): StateLines[] => {
    if (added || removed) return [{ kind: added ? "added" : "removed", text: value }];
    return shortened(value, at === 0, at === parts.length - 1);
  });
}

function printed(state: unknown): string {
  return `${(JSON.stringify(state, null, 2) ?? "").slice(0, COMPARED)}\n`;
}

/** Keeps the lines next to a change. */
function shortened(text: string, isFirst: boolean, isLast: boolean): StateLines[] {
  const lines = text.split(/(?<=\n)/);
  const [head, tail] = [isFirst ? 0 : AROUND, isLast ? 0 : AROUND];
  const left = lines.length - head - tail;
  if (left < 2) return [{ kind: "same", text }];
  const parts: readonly StateLines[] = [
    { kind: "same", text: lines.slice(0, head).join("") },
    { kind: "left out", text: String(left) },
    { kind: "same", text: lines.slice(lines.length - tail).join("") },
  ];
  return parts.filter((part) => part.text !== "");
}
