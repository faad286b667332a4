/** Reads a page's state from its URL and writes it back. */
import { useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useCallback } from "react";

/** The search parameters of the URL. Any link can set them, so each page validates them. */
export type Search = Readonly<Record<string, string | undefined>>;

/** A parameter of the path. */
export function useParam(name: "id" | "group"): string {
  const params: Readonly<Record<string, string | undefined>> = useParams({ strict: false });
  return params[name] ?? "";
}

/**
 * The search of the URL, and a function that changes some of it; an undefined value removes a parameter. `replace` adds
 * no entry to the browser's history, for changes at every keystroke.
 */
export function useAddress(): [Search, (changes: Search, options?: { readonly replace?: boolean }) => void] {
  const search: Search = useSearch({ strict: false });
  const navigate = useNavigate();
  const change = useCallback(
    (changes: Search, { replace = true }: { readonly replace?: boolean } = {}) => {
      const next = (before: Search) => ({ ...before, ...changes });
      // A filtered list keeps its scroll position.
      navigate({ to: ".", search: next as never, replace, resetScroll: false }).catch(reportError);
    },
    [navigate],
  );
  return [search, change];
}
