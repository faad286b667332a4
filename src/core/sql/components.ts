/**
 * The loops of a graph: its strongly connected components, by Tarjan's algorithm, without recursion.
 *
 * Invariant. They come in the order of the graph: none can be reached from one that comes later.
 */
export function componentsOf(
  nodes: readonly number[],
  next: (node: number) => readonly number[],
): readonly (readonly number[])[] {
  const found: number[][] = [];
  const order = new Map<number, number>();
  const low = new Map<number, number>();
  const held: number[] = [];
  const isHeld = new Set<number>();
  const lower = (node: number, to: number) => {
    low.set(node, Math.min(low.get(node) ?? to, to));
  };
  const enter = (node: number) => {
    order.set(node, order.size);
    lower(node, order.get(node) ?? 0);
    held.push(node);
    isHeld.add(node);
    return { node, left: [...next(node)] };
  };
  const leave = (node: number) => {
    if (low.get(node) !== order.get(node)) return;
    const component = held.splice(held.lastIndexOf(node));
    for (const member of component) isHeld.delete(member);
    found.push(component);
  };
  for (const root of nodes) {
    if (order.has(root)) continue;
    const path = [enter(root)];
    for (let top = path.at(-1); top !== undefined; top = path.at(-1)) {
      const to = top.left.pop();
      if (to === undefined) {
        path.pop();
        leave(top.node);
        const above = path.at(-1);
        if (above !== undefined) lower(above.node, low.get(top.node) ?? 0);
      } else if (!order.has(to)) {
        path.push(enter(to));
      } else if (isHeld.has(to)) {
        lower(top.node, order.get(to) ?? 0);
      }
    }
  }
  return found.reverse();
}
