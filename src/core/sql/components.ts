/**
 * The loops of a graph: its strongly connected components, by Tarjan's algorithm, without recursion.
 *
 * Invariant. They come in the order of the graph: none can be reached from one that comes later.
 */
export function componentsOf(
  nodes: readonly number[],
  next: (node: number) => readonly number[],
): readonly (readonly number[])[] {
  const search = new Search(next);
  for (const node of nodes) search.from(node);
  return search.found.toReversed();
}

interface Step {
  readonly node: number;
  readonly left: number[];
}

class Search {
  readonly found: number[][] = [];
  readonly #next: (node: number) => readonly number[];
  readonly #order = new Map<number, number>();
  readonly #low = new Map<number, number>();
  readonly #held: number[] = [];
  readonly #isHeld = new Set<number>();

  constructor(next: (node: number) => readonly number[]) {
    this.#next = next;
  }

  from(root: number): void {
    if (this.#order.has(root)) return;
    const path = [this.#enter(root)];
    for (let top = path.at(-1); top !== undefined; top = path.at(-1)) {
      const to = top.left.pop();
      if (to === undefined) {
        path.pop();
        this.#leave(top.node, path.at(-1));
      } else if (!this.#order.has(to)) {
        path.push(this.#enter(to));
      } else if (this.#isHeld.has(to)) {
        this.#lower(top.node, this.#order.get(to) ?? 0);
      }
    }
  }

  #enter(node: number): Step {
    this.#order.set(node, this.#order.size);
    this.#lower(node, this.#order.size - 1);
    this.#held.push(node);
    this.#isHeld.add(node);
    return { node, left: [...this.#next(node)] };
  }

  #leave(node: number, above: Step | undefined): void {
    const low = this.#low.get(node) ?? 0;
    if (low === this.#order.get(node)) {
      const component = this.#held.splice(this.#held.lastIndexOf(node));
      for (const member of component) this.#isHeld.delete(member);
      this.found.push(component);
    }
    if (above !== undefined) this.#lower(above.node, low);
  }

  #lower(node: number, to: number): void {
    this.#low.set(node, Math.min(this.#low.get(node) ?? to, to));
  }
}
