/**
 * Counts what a validation of JSON Schema takes, from outside the validator, which knows no limit.
 *
 * How. The validator reads the keyword `type` of a subschema first thing whenever it visits it, and `$id` whenever it
 * looks for references. So each subschema gets these two as getters, which count the visit: the visit itself, each
 * entry of the subschema's own lists and each character of what it holds. The value is handed over in proxies that
 * count each reading of a member and of the names. Whatever loop the validator runs, it reads a member or visits a
 * subschema in each turn.
 *
 * Invariants. What is counted is counted before it is done. Where the validator works on lists of its own (places that
 * are evaluated already), the largest list of the value stands for them.
 */
import type { Json, JsonObject } from "../../contract/json.ts";
import type { Work } from "../rubrics/work.ts";

/** Steps, measured: some 2 µs a visit, and what its errors take of memory; 0.3 µs a reading through a proxy. */
const STEPS = { visit: 200, entry: 20, multiple: 400, reading: 5, member: 1, container: 40 };
/** Characters for each step: of a text that is compared or measured, of a name that is matched. */
const TEXT = 64;
const PAIRS = 50;
/** Entries of the validator's own lists for each step. */
const EVALUATED = 4;
const IN_PLACE = ["allOf", "anyOf", "oneOf"];
const VALUES = new Set(["const", "enum"]);
const REQUIRED = new Set(["required", "dependentRequired", "dependencies"]);

/** What is being checked: the budget it draws on, and the largest of what the value holds. */
export class Meter {
  #work: Work;
  #longestText = 0;
  #longestList = 0;
  #branching = 0;

  /** `work`: for what is done while the schema is read. */
  constructor(work: Work) {
    this.#work = work;
  }

  get work(): Work {
    return this.#work;
  }

  spend(steps: number): void {
    this.#work.spend(steps, "checking a value against a JSON Schema");
  }

  /** The value in proxies that count what is read of it; from now on all that is counted is `work`'s. */
  begin(value: Json, work: Work): unknown {
    this.#work = work;
    this.#longestText = 0;
    this.#longestList = 0;
    return this.#wrap(value);
  }

  /**
   * A subschema that counts its visits. `written`: as its author has it, branches of ours left out, which evaluate no
   * place. `path`: characters of the pointer to it.
   */
  schema(own: JsonObject, written: JsonObject, path: number): object {
    const held = heldBy(own);
    const branches = IN_PLACE.reduce((sum, name) => sum + lengthOf(written[name]), 0);
    const remembers = own["unevaluatedProperties"] ?? own["unevaluatedItems"];
    const measures = own["minLength"] ?? own["maxLength"];
    if (branches > 0) this.#branching += 1;
    const { type, $id, ...others } = own;
    const onVisit = () => {
      // Each branch hands on which places it evaluated, and asks those around it.
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

/** What a visit may go through of the subschema itself; subschemas in it count for themselves. */
function heldBy(schema: JsonObject): { readonly steps: number; readonly entries: number } {
  let [steps, entries] = [0, 0];
  for (const [keyword, value] of Object.entries(schema)) {
    const members = typeof value === "object" && value !== null ? Object.keys(value) : [];
    const names = Array.isArray(value) ? 0 : members.reduce((sum, name) => sum + name.length, 0);
    entries += members.length;
    steps += keyword.length + names + members.length * STEPS.entry;
    if (typeof value === "string") steps += value.length;
    // An error says all of them.
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
