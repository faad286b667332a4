/** Why a package cannot be published: the message continues `package: …`. */
import { LIMITS } from "../contract/limits.ts";

export class PackageFault extends Error {}

/** A text of the package in a message. */
export function shown(text: string): string {
  return text.slice(0, LIMITS.publishedReasonCharacters);
}
