/**
 * What the platform shares with the programs beside it, `rollcall/helpers`: values of JSON, media types and seeded random
 * numbers. It loads no schema, so it costs a program no time to start.
 */

export { isRecord } from "./json.ts";
export { mediaTypeOf } from "./media-type.ts";
export { seededRandom } from "./random.ts";
