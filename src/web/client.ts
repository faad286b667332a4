/**
 * The one client of the API, over the session that the browser holds in a cookie, and the cache of what it answered.
 * Nothing secret is kept here or in the browser's storage: the project's name is all that is remembered.
 */
import { QueryClient } from "@tanstack/react-query";
import { RollcallClient } from "../sdk/client.ts";
import { ApiRequestError } from "../sdk/request-error.ts";

const PROJECT = "rollcall.project";

/** The project that is looked at; null: the caller's only one, or `default`. */
export function chosenProject(): string | null {
  return localStorage.getItem(PROJECT);
}

/** Everything on the page belongs to a project, so the page begins anew. */
export function chooseProject(id: string | null): void {
  if (id === null) localStorage.removeItem(PROJECT);
  else localStorage.setItem(PROJECT, id);
  location.assign("/");
}

export const api = new RollcallClient({ baseUrl: location.origin, project: chosenProject() ?? undefined });

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      // The client itself makes calls again where that is safe.
      retry: false,
      staleTime: 2000,
      refetchOnWindowFocus: true,
    },
  },
});

/** True where nobody is signed in, or no longer. */
export function isSignedOut(error: unknown): boolean {
  return error instanceof ApiRequestError && error.status === 401;
}
