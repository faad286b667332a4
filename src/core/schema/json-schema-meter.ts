/**
 * Counts the work of a JSON Schema validation from outside the validator, which has no limit itself.
 *
 * Method. On each visit of a subschema the validator first reads its keyword `type`, and when it looks for references
 * it reads `$id`. So each subschema gets these two as getters that count the visit: the visit itself, each entry of the
 * subschema's own lists and each character of its values. The value is passed in proxies that count each access to a
 * member and to the names. In each iteration of every loop the validator reads a member or visits a subschema.
 *
 * Invariants. Work is counted before it is done. For loops over the validator's own lists (of evaluated places), the
 * length of the value's largest list is used as a bound.
 */
import type { Json, JsonObject } from "../../contract/json.ts";
import type { Work } from "../rubrics/work.ts";

/** Steps, measured: about 2 µs a visit, including the memory of its errors; 0.3 µs an access through a proxy. */
const STEPS = { visit: 200, entry: 20, multiple: 400, reading: 5, member: 1, container: 40 };
/** Characters per step: of a compared or measured text, of a matched name. */
const TEXT = 64;
const PAIRS = 50;
/** Entries of the validator's own lists per step. */
const EVALUATED = 4;
const IN_PLACE = ["allOf", "anyOf", "oneOf"];
const VALUES = new Set(["const", "enum"]);
const REQUIRED = new Set(["required", "dependentRequired", "dependencies"]);

/** The state of a check: its budget, and the sizes of the largest parts of the value. */
export class Meter {
  #work: Work;
  #longestText = 0;
  #longestList = 0;
  #branching = 0;

  /** `work`: the budget for reading the schema. */
  constructor(work: Work) {
    this.#work = work;
  }

  get work(): Work {
    return this.#work;
  }

  spend(steps: number): void {
    this.#work.spend(steps, "checking a value against a JSON Schema");
  }

  /** Wraps the value in proxies that count accesses. From now on everything is counted on `work`. */
  begin(value: Json, work: Work): unknown {
    this.#work = work;
    this.#longestText = 0;
    this.#longestList = 0;
    return this.#wrap(value);
  }

  /**
   * A subschema that counts its visits. `written`: the author's form, without our added branches, which evaluate no
   * place. `path`: the length of the pointer to it, in characters.
   */
  schema(own: JsonObject, written: JsonObject, path: number): object {
    const held = heldBy(own);
    const branches = IN_PLACE.reduce((sum, name) => sum + lengthOf(written[name]), 0);
    const remembers = own["unevaluatedProperties"] ?? own["unevaluatedItems"];
    const measures = own["minLength"] ?? own["maxLength"];
    if (branches > 0) this.#branching += 1;
    const { type, $id, ...others } = own;
    const onVisit = () => {
      // Each branch passes on which places it evaluated, and reads those of the branches around it.
      const lists = branches + (remembers === undefined ? 0 : this.#branching);
      const texts = measures === undefined ? 0 : this.#longestText / TEXT;
      this.spend(STEPS.visit + held.steps + (lists * this.#longestList) / EVALUATED + texts);
      return type;
    };
    const onReference = () => {
      this.spend(STEPS.visit + held.steps + path * (1 + held.entries));
      return $id;
    };
    return Object.defineProperties(others, {
      type: { get: onVisit },
      $id: { get: onReference },
    });
  }

  #wrap(value: Json): unknown {
    if (typeof value === "string") {
      this.#longestText = Math.max(this.#longestText, value.length);
      return value;
    }
    if (typeof value !== "object" || value === null) return value;
    this.spend(STEPS.container);
    const copy = Array.isArray(value)
      ? value.map((item) => this.#wrap(item))
      : Object.fromEntries(Object.entries(value).map(([name, member]) => [name, this.#wrap(member)]));
    const names = Object.keys(copy);
    this.spend(STEPS.member * names.length);
    this.#longestList = Math.max(this.#longestList, names.length);
    const listing = Array.isArray(copy) ? names.length : listingSteps(names);
    return new Proxy(copy, this.#handler(listing));
  }

  #handler(listing: number): ProxyHandler<object> {
    return {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name);
        this.spend(STEPS.reading + (typeof member === "string" ? member.length / TEXT : 0));
        return member;
      },
      getOwnPropertyDescriptor: (target, name) => {
        this.spend(STEPS.reading);
        return Reflect.getOwnPropertyDescriptor(target, name);
      },
      ownKeys: (target) => {
        this.spend(STEPS.reading + listing);
        return Reflect.ownKeys(target);
      },
    };
  }
}

/** A pattern may be matched with each name of an object, with one repetition from each place in it. */
function listingSteps(names: readonly string[]): number {
  return names.reduce((sum, { length }) => sum + STEPS.reading + length + length ** 2 / PAIRS, 0);
}

/** The work of a visit in the subschema itself; nested subschemas are counted by themselves. */
function heldBy(schema: JsonObject): { readonly steps: number; readonly entries: number } {
  let [steps, entries] = [0, 0];
  for (const [keyword, value] of Object.entries(schema)) {
    const members = typeof value === "object" && value !== null ? Object.keys(value) : [];
    const names = Array.isArray(value) ? 0 : members.reduce((sum, name) => sum + name.length, 0);
    entries += members.length;
    steps += keyword.length + names + members.length * STEPS.entry;
    if (typeof value === "string") steps += value.length;
    // The error message contains all values.
    if (VALUES.has(keyword)) steps += JSON.stringify(value).length;
    if (keyword === "multipleOf") steps += STEPS.multiple;
    if (REQUIRED.has(keyword)) steps += requiredSteps(value);
  }
  return { steps, entries };
}

/** Each name in these lists may become an error. */
function requiredSteps(value: Json | undefined): number {
  if (typeof value === "string") return STEPS.visit + value.length;
  if (typeof value !== "object" || value === null) return 0;
  const lists: readonly Json[] = Array.isArray(value)
    ? value
    : Object.values(value).filter((list) => Array.isArray(list));
  return lists.reduce((sum: number, item) => sum + requiredSteps(item), 0);
}

function lengthOf(list: Json | undefined): number {
  return Array.isArray(list) ? list.length : 0;
}
