/** What exists in the project and can be chosen in the form: endpoints with their models, fleets and datasets. */
import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { ApiRequestError } from "../../../sdk/request-error.ts";
import { api } from "../../client.ts";
import type { Field } from "./fields.ts";
import type { Written } from "./request.ts";

const MOST = { limit: 100 } as const;

export const ENDPOINTS = { queryKey: ["endpoints", "known"], queryFn: () => api.endpoints.list(MOST) } as const;

/** A list of what exists, and how far it was read. */
export interface Known<Item> {
  readonly data: readonly Item[];
  readonly isReading: boolean;
  /** Null if the list was read, or if the user has no permission to read it. */
  readonly error: unknown;
  readonly onRetry: () => void;
}

/** The lists of the project. A user without the permission for one gets it empty. */
export function useKnown() {
  const endpoints = useQuery(ENDPOINTS);
  const fleets = useQuery({ queryKey: ["fleets", "known"], queryFn: () => api.fleets.list(MOST) });
  const datasets = useQuery({ queryKey: ["datasets", "known"], queryFn: () => api.datasets.list(MOST) });
  return { endpoints: knownOf(endpoints), fleets: knownOf(fleets), datasets: knownOf(datasets) };
}

type Lists = ReturnType<typeof useKnown>;

function knownOf<Item>({
  data,
  error,
  isPending,
  refetch,
}: Pick<UseQueryResult<{ readonly data: readonly Item[] }>, "data" | "error" | "isPending" | "refetch">): Known<Item> {
  const isForbidden = error instanceof ApiRequestError && error.status === 403;
  return {
    data: data?.data ?? [],
    isReading: isPending,
    error: data !== undefined || isForbidden ? null : error,
    onRetry: () => {
      refetch().catch(reportError);
    },
  };
}

/** What may be chosen for a field; null for a field that is only written. The models are those of its endpoint. */
export function choicesFor(field: Field, lists: Lists, written: Written): Known<string> | null {
  if (field.known === undefined) return null;
  if (field.known !== "models") {
    const list: Known<{ readonly id: string; readonly name: string | null }> = lists[field.known];
    return { ...list, data: distinct(list.data.map(({ name, id }) => name ?? id)) };
  }
  const { endpoints } = lists;
  const endpoint = written[field.endpointParam ?? "endpoint"];
  const chosen = endpoints.data.find(({ id, name }) => id === endpoint || name === endpoint);
  // The field of the endpoint shows why the list of endpoints could not be read.
  return { ...endpoints, error: null, data: distinct(chosen?.capabilities?.models ?? []) };
}

/** The text in the field: the name of what an id names, if it is known. */
export function textFor(field: Field, lists: Lists, text: string): string {
  if (field.known === undefined || field.known === "models") return text;
  const list: Known<{ readonly id: string; readonly name: string | null }> = lists[field.known];
  return list.data.find(({ id }) => id === text)?.name ?? text;
}

const distinct = (values: readonly string[]) => [...new Set(values)];
