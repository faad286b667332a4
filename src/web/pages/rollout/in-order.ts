/** Items of a list whose order never changes, with their positions as React keys. */
export function inOrder<Item>(items: readonly Item[]): readonly { readonly place: number; readonly item: Item }[] {
  return items.map((item, place) => ({ place, item }));
}
