/** Lists: which entries hold together, which are alternatives, and whether the order counts. */
import type { Answer, Joint } from "./syntax.ts";

/**
 * The solutions for several unknowns, `x = 1, y = 2 or x = 3, y = 4`: a list of lists, each with every unknown once.
 * Undefined if no unknown occurs twice, or if there is only one; null if it is unclear which values belong together.
 */
export function solutionsOf(items: readonly Answer[]): Answer | null | undefined {
  const names = items.map(unknownOf);
  const known = names.filter((name) => name !== null);
  const unknowns = new Set(known);
  // In `x = 1, y = 2 or 3` it is unclear to which unknown 3 belongs.
  if (unknowns.size > 1 && items.some(({ kind }) => kind === "expression" || kind === "quantity")) return null;
  if (unknowns.size < 2 || unknowns.size === known.length) return undefined;
  const solutions: Map<string, Answer>[] = [];
  for (const [at, item] of items.entries()) {
    const name = names[at];
    if (typeof name !== "string") return null;
    const last = solutions.at(-1);
    if (last === undefined || last.has(name)) solutions.push(new Map([[name, item]]));
    else last.set(name, item);
  }
  if (solutions.some(({ size }) => size !== unknowns.size)) return null;
  const lists = solutions.map((each): Answer => ({ kind: "list", joint: "and", items: [...each.values()] }));
  return { kind: "list", joint: "or", items: lists };
}

/** The unknown whose value an item gives. */
function unknownOf(item: Answer): string | null {
  if (item.kind !== "relation") return null;
  const isValue = item.links.every(({ sign }) => sign === "=" || sign === "approx");
  return isValue && item.links[0] !== undefined ? item.links[0].left.label : null;
}

/** The name that a relation is about; also for 5 > x. */
export function nameOf(item: Answer): string | null {
  const [link] = item.kind === "relation" ? item.links : [];
  return link?.left.label ?? link?.right.label ?? null;
}

/** Whether it is a condition and not a value: `x > 2`, `x \ne 2`. */
export function isCondition(item: Answer): boolean {
  return item.kind === "relation" && item.links.some(({ sign }) => sign !== "=");
}

/** The most specific of the written joints. */
export function jointOf(marks: ReadonlySet<string | undefined>): Joint {
  if (marks.has("or") || marks.has("lor")) return "or";
  return marks.has(",") || marks.has(";") ? "," : "and";
}

type List = Answer & { readonly kind: "list" };

/**
 * Conditions joined by "and" differ from conditions joined by "or", and so do names; for values it makes no difference.
 */
export function mayJoinAlike(a: List, b: List): boolean {
  const items = [...a.items, ...b.items];
  if (a.joint === b.joint || (a.joint !== "or" && b.joint !== "or")) return true;
  if (items.some(isCondition)) return false;
  return a.joint === "," || b.joint === "," || (!items.some(isThing) && namesIn(a).size < 2 && namesIn(b).size < 2);
}

/** A name or words. */
function isThing(item: Answer): boolean {
  return item.kind === "phrase" || (item.kind === "expression" && item.expression.kind === "symbol");
}

/** If unwritten entries follow, the order shows which they are. */
export function isDots(item: Answer): boolean {
  return item.kind === "phrase" && item.parts.length === 1 && item.parts[0] === "dots";
}

function namesIn({ items }: List): Set<string> {
  const labels = items.map((item) => (item.kind === "relation" ? item.links[0]?.left.label : null));
  return new Set(labels.filter((label) => typeof label === "string"));
}
