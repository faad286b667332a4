/** The names by which usage is divided: their places in the URL, and the names of projects and keys by id. */
import { useQuery } from "@tanstack/react-query";
import type { UsageGroup } from "../../../billing/wire.ts";
import type { UsageQuery } from "../../../sdk/options.ts";
import type { Search } from "../../address.ts";
import { api } from "../../client.ts";
import { useMay, useSession } from "../../layout/session.tsx";

/** In the order of the page. */
export const DIVIDED_BY = ["project", "key", "model", "environment", "kind"] as const satisfies readonly UsageGroup[];
const KINDS = ["eval", "training", "storage"] as const;

export type UsageLimits = Pick<UsageQuery, "project_id" | "key_id" | "model" | "environment" | "kind">;

/** What the URL limits the usage to, as the API names it. */
export function namesIn(search: Search): UsageLimits {
  return {
    project_id: search["project"],
    key_id: search["key"],
    model: search["model"],
    environment: search["environment"],
    kind: KINDS.find((one) => one === search["kind"]),
  };
}

const MOST = { limit: 100 } as const;

/** A function that returns the name of a project, a key or a person; an id without a known name is its own name. */
export function useNames(): (group: UsageGroup, id: string) => string {
  const mayAdmin = useMay("admin");
  const { project } = useSession();
  // A key of one project reads the usage of that project, whose name it has.
  const often = { enabled: project === null, staleTime: 60_000 };
  const projects = useQuery({ queryKey: ["projects"], queryFn: () => api.projects.list(MOST), ...often });
  const rest = { ...often, enabled: mayAdmin && project === null };
  const keys = useQuery({ queryKey: ["key", "known"], queryFn: () => api.keys.list(MOST), ...rest });
  const people = useQuery({ queryKey: ["person", "known"], queryFn: () => api.people.list(MOST), ...rest });
  const known = new Map<string, string>([
    ...(project === null ? [] : [[project.id, project.name] as const]),
    ...(projects.data?.data ?? []).map(({ id, name }) => [id, name] as const),
    ...(keys.data?.data ?? []).map(({ id, name }) => [id, name] as const),
    ...(people.data?.data ?? []).map(({ id, name, email }) => [id, name ?? email] as const),
  ]);
  return (group, id) => (id === "" ? `no ${group}` : (known.get(id) ?? id));
}
