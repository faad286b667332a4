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
    joined(
      parts
        .filter((part) => !part[not])
        .map(({ value, added, removed }) => ({ text: value, changed: added === true || removed === true })),
    );
  return { old: side("added"), fresh: side("removed") };
}

/** Joins changed parts between which there is only white space. */
function joined(parts: readonly TextPart[]): readonly TextPart[] {
  const all: TextPart[] = [];
  for (const part of parts) {
    const [space, before] = [all.at(-1), all.at(-2)];
    const last = all.length - 1;
    if (space?.changed === part.changed) {
      all[last] = { text: space.text + part.text, changed: part.changed };
    } else if (part.changed && space !== undefined && before !== undefined && space.text.trim() === "") {
      all.splice(last - 1, 2, { text: before.text + space.text + part.text, changed: true });
    } else {
      all.push(part);
    }
  }
  return all;
}
