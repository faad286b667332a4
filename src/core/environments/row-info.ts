/** Reads the `info` of a row. It may be a JSON text, because files whose rows differ in shape often store it so. */
import { messageOf } from "../../contract/errors.ts";
import { findOddity, isRecord, type Json, type JsonObject } from "../../contract/json.ts";
import { findLost } from "../../contract/lost-json.ts";

/** `info` cannot be read. `path` names the field, and begins with `info`. */
export class InfoError extends RangeError {
  override readonly name = "InfoError";
  readonly path: string;

  constructor(path: string, message: string) {
    super(message);
    this.path = path;
  }
}

/** The parsed `info`; `{}` if a row has none. Throws `InfoError`. */
export function readInfo(info: Json | undefined): Json {
  if (typeof info !== "string") return info ?? {};
  const read = parseInfo(info);
  const odd = findOddity(read, "info");
  if (odd !== null) throw new InfoError(odd.path, `${odd.path}: ${odd.message}`);
  const lost = findLost(info, read, "info");
  if (lost !== null) throw new InfoError(lost.path, lost.message);
  return read;
}

/** The same for a row in a group of environments, whose `info` also has the route. Throws `InfoError`. */
export function readRoutedInfo(info: Json | undefined): JsonObject {
  const read = readInfo(info);
  if (isRecord(read)) return read;
  throw new InfoError("info", "info must be an object: in a group of environments it names the environment of the row");
}

function parseInfo(text: string): Json {
  try {
    return JSON.parse(text);
  } catch (thrown) {
    throw new InfoError("info", `info is text but not JSON: ${messageOf(thrown)}`);
  }
}
