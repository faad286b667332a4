/** How two texts differ, by word or by sentence. Pure. */
import { diffSentences, diffWordsWithSpace } from "diff";

export const UNITS = ["word", "sentence"] as const;
export type Unit = (typeof UNITS)[number];

export interface TextPart {
  readonly text: string;
  readonly changed: boolean;
}

/** The parts of each text; a changed part is not in the other. */
export interface TextDifference {
  readonly old: readonly TextPart[];
  readonly fresh: readonly TextPart[];
}

/** In milliseconds. Texts that take longer have little in common: they are returned as changed throughout. */
const PATIENCE = 200;

export function textDifference(old: string, fresh: string, unit: Unit): TextDifference {
  const compare = unit === "word" ? diffWordsWithSpace : diffSentences;
  const parts = compare(old, fresh, { timeout: PATIENCE });
  if (parts === undefined) return { old: [{ text: old, changed: true }], fresh: [{ text: fresh, changed: true }] };
  const side = (not: "added" | "removed") =>
    parts
      .filter((part) => !part[not])
      .map(({ value, added, removed }) => ({ text: value, changed: added === true || removed === true }));
  return { old: side("added"), fresh: side("removed") };
}
