/** A run by its name if it has one, else by its id. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { api } from "../../client.ts";
import { Shown } from "../../components/shown.tsx";

export function RunName({ id }: { readonly id: string }) {
  const { data } = useQuery({ queryKey: ["run", id], queryFn: ({ signal }) => api.runs.get(id, { signal }) });
  return (
    <Link to="/runs/$id" params={{ id }} search={{}} title={id}>
      <Shown text={data?.name ?? id} />
    </Link>
  );
}
