/**
 * Texts that people are shown: names, metadata, addresses. Characters that are invisible or deceptive are refused on
 * input: control characters, line breaks, halves of surrogate pairs, and marks that change the direction of the text
 * around them.
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

/**
 * The address of a service that the platform calls over HTTP. Characters that a URL parser would strip silently are
 * refused.
 */
export const WebAddress = ShownText.max(2048)
  .regex(/^https?:\/\/[^\s\\/@?#]+(?:[/?#]\S*)?$/i, {
    error: "must be an http or https address without spaces, a user name or a password",
  })
  .check(z.url({ protocol: /^https?$/ }));

/** A text from a request, as it may be quoted in a reply: on one line, without unreadably long runs of characters. */
export function quotedText(text: string, longest: number): string {
  const short = text.replaceAll(/\S{101,}/g, (run) => `${run.slice(0, 100)}…`);
  const cut = short.length > longest ? `${short.slice(0, longest)}…` : short;
  return allSeen(cut);
}

/** The whole text with invisible characters escaped. */
export function allSeen(text: string): string {
  return text.replaceAll(EACH_HIDDEN, (mark) => `\\u${mark.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** The end of a text that was cut. */
export const CUT = "… [cut]";

/** A text of any length, shortened for storage: at most so many UTF-16 units, including the mark of the cut. */
export function shortText(text: string, most: number): string {
  return text.length <= most ? text : text.slice(0, cutBefore(text, most - CUT.length)) + CUT;
}

/** Where to cut: at `index` or one before it, never between the halves of a surrogate pair. */
export function cutBefore(text: string, index: number): number {
  const unit = text.charCodeAt(index - 1);
  return unit >= 0xd800 && unit <= 0xdbff ? index - 1 : index;
}

/** Checks a name that is stored and shown with every rollout. Throws TypeError. */
export function requireName(what: string, name: string): void {
  const named = quotedText(JSON.stringify(shortText(name, 40)), 100);
  if (name.length > LIMITS.nameCharacters) {
    throw new TypeError(`${what} ${named}: a name has at most ${LIMITS.nameCharacters} characters`);
  }
  const shown = ShownText.safeParse(name);
  if (shown.success) return;
  throw new TypeError(`${what} ${named}: a name ${shown.error.issues[0]?.message}`);
}
