/** What a page reads from its address and writes into it. */
import { useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useCallback } from "react";

/** What pages keep in the address. Everything in it came from a link, so each page reads it with care. */
export type Search = Readonly<Record<string, string | undefined>>;

/** A parameter of the path. */
export function useParam(name: "id" | "group"): string {
  const params: Readonly<Record<string, string | undefined>> = useParams({ strict: false });
  return params[name] ?? "";
}

/**
 * The search of the address, and how to change some of it: what is undefined goes out of it. `replace` keeps the change
 * out of the browser's history, for what changes with every key.
 */
export function useAddress(): [Search, (changes: Search, options?: { readonly replace?: boolean }) => void] {
  const search: Search = useSearch({ strict: false });
  const navigate = useNavigate();
  const change = useCallback(
    (changes: Search, { replace = true }: { readonly replace?: boolean } = {}) => {
      const next = (before: Search) => ({ ...before, ...changes });
      // A list that is filtered keeps its place on the screen.
      navigate({ to: ".", search: next as never, replace, resetScroll: false }).catch(reportError);
    },
    [navigate],
  );
  return [search, change];
}
