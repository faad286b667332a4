/**
 * Fields of `extra_body` that may let an endpoint exceed the bound of a call (call-size.ts) or call another model.
 * Servers spell them in many ways and put them into objects such as `options`, so names are compared without case and
 * separators, at any depth. A field that matches no pattern is allowed: docs/billing.md says so.
 */
import { isRecord } from "../../contract/json.ts";

export interface UnboundedField {
  /** From `extra_body` on, such as `options.num_predict`. */
  readonly path: string;
  readonly why: string;
}

/** Fields at the top of the body. Their values are part of the bound. */
export const TOKEN_LIMITS = ["max_tokens", "max_completion_tokens"] as const;
export const REPLY_COUNTS = ["n", "best_of"] as const;
const COUNTED: readonly string[] = [...TOKEN_LIMITS, ...REPLY_COUNTS];

/** The first match decides. */
const KINDS: readonly { readonly names: RegExp; readonly why: string }[] = [
  {
    names: new RegExp(
      [
        "(max|num).*(tok|len|predict)|^npredict$|max.*(output|gen|completion|new|response)",
        "(new|output|completion|generat(ed|ion)|response)(tok|len)|tok(en)?s?(limit|max|to(generate|sample))",
      ].join("|"),
    ),
    why: "it may override sampling.max_tokens, by which the cost is limited: use that",
  },
  {
    names: new RegExp(
      [
        "^n$|^n?best(of)?$|beam(s|search|width|size|count)?$",
        "^n(um)?(return|sequence|sample|completion|choice|candidate|generation|response|output|repl)",
        "(sequence|sample|completion|choice|candidate|generation|response)s?(count|num)",
      ].join("|"),
    ),
    why: "it may request replies that are not counted: use sampling.extra_body.n or rollouts_per_example",
  },
  {
    names:
      /^(fallback|base|target|override)?models?(id|name|list)?$|^(?!allow).*fallbacks$|^(engine|deployment)(id|name)?$|^(preset|route)$|adapter|^lora/,
    why: "it may call another model at other prices: use model",
  },
  {
    names:
      /^(?!disable).*search|^(tools|plugins|prediction|chattemplate|datasources|cachedcontent|previousresponseid|fileids)$|^(mmprocessor|mediaio)kwargs$/,
    why: "its effect on the cost is unknown: remove it",
  },
];

/** Objects whose members have free names: a schema may have a property `n` or a `maxLength`. */
const NOT_OPTIONS = /schema|json|format|guided|structured|grammar|metadata|^functions?$|^toolchoice$|^logitbias$/;

const LONGEST_NAME = 100;

/** The first such field; null if there is none. */
export function unboundedField(extra_body: Readonly<Record<string, unknown>>): UnboundedField | null {
  const others = Object.entries(extra_body).filter(([name]) => !COUNTED.includes(name));
  return firstWithin(others, "");
}

type Members = readonly (readonly [name: string, value: unknown])[];

function firstWithin(members: Members, above: string): UnboundedField | null {
  for (const [name, value] of members) {
    const found = fieldAt(name, value, `${above}${name}`);
    if (found !== null) return found;
  }
  return null;
}

function fieldAt(name: string, value: unknown, path: string): UnboundedField | null {
  if (value === null || value === false) return null;
  // Servers written in Go also match the long s as s, and the kelvin sign as k. Names are cut, because no server has a
  // longer one and matching takes time that grows with the square of the length.
  const folded = name
    .slice(0, LONGEST_NAME)
    .normalize("NFKC")
    .toLowerCase()
    .replaceAll(/[^a-z0-9]/g, "");
  const kind = KINDS.find(({ names }) => names.test(folded));
  if (kind !== undefined) return { path, why: kind.why };
  if (NOT_OPTIONS.test(folded)) return null;
  const holds = Array.isArray(value) || isRecord(value);
  return holds ? firstWithin(Object.entries(value), `${path}.`) : null;
}
