/**
 * The only client of the API, with the session that the browser holds in a cookie, and the cache of the answers.
 * Nothing secret is stored here or in the browser's storage; this module stores only the id of the chosen project.
 */
import { QueryClient } from "@tanstack/react-query";
import { RollcallClient } from "../sdk/client.ts";
import { ApiRequestError } from "../sdk/request-error.ts";

const PROJECT = "rollcall.project";

/** The chosen project; null for the caller's only one, or `default`. */
export function chosenProject(): string | null {
  return localStorage.getItem(PROJECT);
}

/** Everything on the page belongs to a project, so the page loads again. */
export function chooseProject(id: string | null): void {
  if (id === null) localStorage.removeItem(PROJECT);
  else localStorage.setItem(PROJECT, id);
  location.assign("/");
}

export const api = new RollcallClient({ baseUrl: location.origin, project: chosenProject() ?? undefined });

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      // The client itself retries where that is safe.
      retry: false,
      staleTime: 2000,
      refetchOnWindowFocus: true,
    },
  },
});

/** True if no user is signed in, or if the session has ended. */
export function isSignedOut(error: unknown): boolean {
  return error instanceof ApiRequestError && error.status === 401;
}
