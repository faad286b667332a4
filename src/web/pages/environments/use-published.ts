/** Loads a published environment: its versions, its README, and what the project lets it use. */
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { ApiRequestError } from "../../../sdk/request-error.ts";
import { api } from "../../client.ts";

/** `name` is `owner/name`; the newest version first. */
export function useVersions(name: string) {
  return useInfiniteQuery({
    queryKey: ["environment", name, "versions"],
    queryFn: ({ pageParam, signal }) => api.environments.versions(name, { after: pageParam }, { signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => (page.has_more ? (page.last_id ?? undefined) : undefined),
    select: ({ pages }) => pages.flatMap((page) => page.data),
  });
}

/** Null if the version has none. */
export function useReadme(id: string) {
  return useQuery({
    queryKey: ["environment", id, "readme"],
    queryFn: async ({ signal }) => {
      try {
        return await api.environments.readme(id, { signal });
      } catch (error) {
        if (error instanceof ApiRequestError && error.status === 404) return null;
        throw error;
      }
    },
    // A version never changes.
    staleTime: Number.POSITIVE_INFINITY,
  });
}

export function useGrant(name: string) {
  return useQuery({
    queryKey: ["environment", name, "grant"],
    queryFn: ({ signal }) => api.environments.getGrant(name, { signal }),
  });
}
