/**
 * What the platform shares with other programs, as `rollcall/helpers`: JSON values, media types and seeded random
 * numbers. It loads no schema, so a program that imports it starts fast.
 */

export { isRecord } from "./json.ts";
export { mediaTypeOf } from "./media-type.ts";
export { seededRandom } from "./random.ts";
