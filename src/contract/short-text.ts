/** Texts of any length, such as what a server says of itself, as they are stored: their beginning, marked where it was cut. */
import { LIMITS } from "./limits.ts";
import { ShownText, saidBack } from "./shown-text.ts";

/** What a cut text ends with. */
export const CUT = "… [cut]";

/** At most so many UTF-16 units, the mark included. */
export function shortText(text: string, most: number): string {
  return text.length <= most ? text : text.slice(0, cutBefore(text, most - CUT.length)) + CUT;
}

/** Where to cut, at `index` or one before it: never between the halves of a surrogate pair. */
export function cutBefore(text: string, index: number): number {
  const unit = text.charCodeAt(index - 1);
  return unit >= 0xd800 && unit <= 0xdbff ? index - 1 : index;
}

/** For names that are stored with every rollout, and shown with it. Throws TypeError. */
export function requireName(what: string, name: string): void {
  const named = saidBack(JSON.stringify(shortText(name, 40)), 100);
  if (name.length > LIMITS.nameCharacters) {
    throw new TypeError(`${what} ${named}: a name has at most ${LIMITS.nameCharacters} characters`);
  }
  const shown = ShownText.safeParse(name);
  if (shown.success) return;
  throw new TypeError(`${what} ${named}: a name ${shown.error.issues[0]?.message}`);
}
