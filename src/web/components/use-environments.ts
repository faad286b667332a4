/** Loads the environments of the platform for the pages that name them. */
import { useQuery } from "@tanstack/react-query";
import { api } from "../client.ts";

export function useEnvironments() {
  return useQuery({
    queryKey: ["environments"],
    queryFn: async ({ signal }) => (await api.environments.list({}, { signal })).data,
    staleTime: 60_000,
  });
}
