/**
 * Texts that people are shown: names, the pairs of metadata, addresses. What cannot be seen in them, or makes them look
 * like others, is refused where they come in: control characters, line breaks, halves of surrogate pairs, and marks that
 * turn the direction of the text around them.
 */
import * as z from "zod";
import { LIMITS } from "./limits.ts";

const HIDDEN = String.raw`\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069`;
const SHOWN = new RegExp(`^[^${HIDDEN}]*$`, "u");
const EACH_HIDDEN = new RegExp(`[${HIDDEN}]`, "gu");

/** A name, or any other text of one line. */
export const ShownText = z.string().regex(SHOWN, {
  error: "must not contain control characters, line breaks, unpaired surrogates or bidirectional marks",
});

/** What the platform calls over HTTP. What a URL parser would strip in silence is refused. */
export const WebAddress = ShownText.max(2048)
  .regex(/^https?:\/\/[^\s\\/@?#]+(?:[/?#]\S*)?$/i, {
    error: "must be an http or https address without spaces, a user name or a password",
  })
  .check(z.url({ protocol: /^https?$/ }));

/** Of a text that somebody sent, what may be said back to him: in one line, and no run of characters too long to read. */
export function saidBack(text: string, longest: number): string {
  const short = text.replaceAll(/\S{101,}/g, (run) => `${run.slice(0, 100)}…`);
  const cut = short.length > longest ? `${short.slice(0, longest)}…` : short;
  return allSeen(cut);
}

/** The whole text with what cannot be seen in it written out. */
export function allSeen(text: string): string {
  return text.replaceAll(EACH_HIDDEN, (mark) => `\\u${mark.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** What a cut text ends with. */
export const CUT = "… [cut]";

/** A text of any length as it is stored: its beginning, at most so many UTF-16 units, the mark of the cut included. */
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
