/** Loads the environments that a run may name: the platform does not play those of Python. */
import { useQuery } from "@tanstack/react-query";
import { api } from "../client.ts";

export function useEnvironments() {
  return useQuery({
    queryKey: ["environments"],
    queryFn: async ({ signal }) => {
      const { data } = await api.environments.list({}, { signal });
      return data.filter(({ published }) => published?.kind !== "python");
    },
    staleTime: 60_000,
  });
}
