/** Items that stand in an order which never changes, with their places for keys. */
export function inOrder<Item>(items: readonly Item[]): readonly { readonly place: number; readonly item: Item }[] {
  return items.map((item, place) => ({ place, item }));
}
