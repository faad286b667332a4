/** The environments of the platform, for every page that names them. */
import { useQuery } from "@tanstack/react-query";
import { api } from "../client.ts";

export function useEnvironments() {
  return useQuery({
    queryKey: ["environments"],
    queryFn: async ({ signal }) => (await api.environments.list({ signal })).data,
    staleTime: 60_000,
  });
}
