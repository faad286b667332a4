/**
 * What a page leaves with an entry of the browser's history, for whoever comes back to it: where a list was, which of its
 * pages were known. It lives as long as the program does, and no longer than the entry.
 */
import type { RouterHistory } from "@tanstack/react-router";
import { useRouter } from "@tanstack/react-router";
import { useCallback, useState } from "react";

/** Of each entry, by its place in the history. */
const kept = new Map<number, Map<string, unknown>>();

/** A new entry takes the place of all that were before the reader went back. */
export function forgetWithHistory(history: RouterHistory): void {
  history.subscribe(({ action, location }) => {
    if (action.type !== "PUSH") return;
    for (const entry of kept.keys()) {
      if (entry >= location.state.__TSR_index) kept.delete(entry);
    }
  });
}

/** What was kept under this name when the entry was shown before, and how to keep something now. */
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
