/**
 * The formats of one JSON Schema: those of the validator's that it names, and one for each of its patterns.
 *
 * Invariants. Each takes time linear in the text (tested with hostile texts), and that is counted. The validator's formats are
 * a record of the package's: what is lent to it is there while one value is checked, and nobody else runs in between.
 */
import { format } from "@cfworker/json-schema";
import type { Json } from "../../contract/json.ts";
import type { Meter } from "./json-schema-meter.ts";
import { Pattern, translatePattern } from "./pattern.ts";

type Format = (text: string) => boolean;

/** Characters for each step: of a split, of a regular expression that never goes back. */
const CHARACTERS = 2;

/** Of the package's own, that backtracks without end; spelt so that no text can be read in two ways, and in parts. */
const LABEL = /[a-z\u{a1}-\u{ffff}0-9]+(?:-[a-z\u{a1}-\u{ffff}0-9]+)*/u.source;
const PUBLIC_IP =
  /(?!10(?:\.\d{1,3}){3})(?!127(?:\.\d{1,3}){3})(?!169\.254(?:\.\d{1,3}){2})(?!192\.168(?:\.\d{1,3}){2})(?!172\.(?:1[6-9]|2\d|3[0-1])(?:\.\d{1,3}){2})(?:[1-9]\d?|1\d\d|2[01]\d|22[0-3])(?:\.(?:1?\d{1,2}|2[0-4]\d|25[0-5])){2}\.(?:[1-9]\d?|1\d\d|2[0-4]\d|25[0-4])/
    .source;
const HOST_AND_PORT = new RegExp(
  `^(?:${PUBLIC_IP}|${LABEL}(?:\\.${LABEL})*\\.[a-z\\u{a1}-\\u{ffff}]{2,})(?::\\d{2,5})?$`,
  "iu",
);
const SCHEME = /^(?:https?|ftp):\/\//i;

const OWN: Readonly<Record<string, Format>> = { url: isUrl };

export class Formats {
  readonly #meter: Meter;
  readonly #own = new Map<string, Format>();

  constructor(meter: Meter) {
    this.#meter = meter;
  }

  /** What a schema says under `format`; one that nobody knows allows anything. */
  use(name: Json | undefined): void {
    if (typeof name !== "string" || !Object.hasOwn(format, name) || this.#own.has(name)) return;
    const known = OWN[name] ?? format[name];
    if (known === undefined) return;
    this.#own.set(name, (text) => {
      this.#meter.spend(text.length / CHARACTERS);
      return known(text);
    });
  }

  /** The name of a format that is the pattern. */
  addPattern(source: string): string {
    const name = `/${source}/`;
    if (!this.#own.has(name)) {
      const pattern = new Pattern(translatePattern(source), this.#meter.work);
      this.#own.set(name, (text) => pattern.isIn(text, this.#meter.work));
    }
    return name;
  }

  /** The validator knows these while `run` runs. */
  lend<T>(run: () => T): T {
    const before = new Map([...this.#own.keys()].map((name) => [name, format[name]]));
    for (const [name, own] of this.#own) format[name] = own;
    try {
      return run();
    } finally {
      for (const [name, known] of before) {
        if (known === undefined) delete format[name];
        else format[name] = known;
      }
    }
  }
}

/** Of http, https or ftp, with a host that is public by its form. */
function isUrl(text: string): boolean {
  const scheme = SCHEME.exec(text)?.[0];
  if (scheme === undefined || /\s/.test(text)) return false;
  // A user's name and a path may hold any sign: whichever "@" has a host behind it will do.
  const parts = text.slice(scheme.length).split("@");
  return parts.some((part, at) => {
    const nameless = at === 1 && parts[0] === "";
    const [host = "", path] = part.split("/", 2);
    const ends = path !== undefined || at === parts.length - 1;
    return ends && !nameless && HOST_AND_PORT.test(host);
  });
}
