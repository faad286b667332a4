/**
 * Stores a page's state with an entry of the browser's history, for a reader who comes back to it: the position of a
 * list, and which of its pages were known. The state is in memory only, and is dropped with its history entry.
 */
import type { RouterHistory } from "@tanstack/react-router";
import { useRouter } from "@tanstack/react-router";
import { useCallback, useState } from "react";

/** The state of each entry, by its position in the history. */
const kept = new Map<number, Map<string, unknown>>();

/** A new entry replaces all entries after the one that the reader went back to. */
export function forgetWithHistory(history: RouterHistory): void {
  history.subscribe(({ action, location }) => {
    if (action.type !== "PUSH") return;
    for (const entry of kept.keys()) {
      if (entry >= location.state.__TSR_index) kept.delete(entry);
    }
  });
}

/** The value that was stored under this name when the entry was last shown, and a function that stores a new one. */
export function useKept<Value>(name: string): readonly [Value | undefined, (value: Value) => void] {
  const { history } = useRouter();
  const [entry] = useState(() => history.location.state.__TSR_index);
  const [found] = useState(() => kept.get(entry)?.get(name) as Value | undefined);
  const keep = useCallback(
    (value: Value) => {
      const all = kept.get(entry) ?? new Map<string, unknown>();
      kept.set(entry, all.set(name, value));
    },
    [entry, name],
  );
  return [found, keep];
}
