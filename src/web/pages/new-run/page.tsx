/** Starts a run of any environment. The URL may contain `environment`, and what the form reads from it. */
import { useQuery } from "@tanstack/react-query";
import type { EnvironmentView } from "../../../contract/run.ts";
import { useAddress } from "../../address.ts";
import { api } from "../../client.ts";
import { ErrorNote } from "../../components/error-note.tsx";
import { Loading } from "../../components/loading.tsx";
import { useEnvironments } from "../../components/use-environments.ts";
import { useDocumentTitle } from "../../layout/title.ts";
import { labelOf } from "./fields.ts";
import { RunForm } from "./form.tsx";

export function Page() {
  useDocumentTitle("New run");
  const [{ environment: name }] = useAddress();
  const { data, error, refetch } = useEnvironments();
  const named = useNamed(name, data);
  const listed = data?.find((one) => isNamed(one, name)) ?? data?.[0];
  return (
    <main>
      <h1>New run</h1>
      {error !== null && <ErrorNote error={error} onRetry={refetch} />}
      {named.error !== null && <ErrorNote error={named.error} onRetry={named.refetch} />}
      {((data === undefined && error === null) || named.isLoading) && <Loading what="environments" />}
      {data !== undefined && !named.isLoading && named.error === null && (
        <RunForm environments={named.data === undefined ? data : [named.data, ...data]} first={named.data ?? listed} />
      )}
    </main>
  );
}

/** The environment of the URL, if the first page of the list does not have this version of it. */
function useNamed(name: string | undefined, listed: readonly EnvironmentView[] | undefined) {
  const isListed = listed?.some((one) => isNamed(one, name)) ?? true;
  return useQuery({
    queryKey: ["environment", name],
    queryFn: ({ signal }) => api.environments.get(name ?? "", { signal }),
    enabled: name !== undefined && !isListed,
  });
}

/** With or without its version. */
function isNamed(environment: EnvironmentView, name: string | undefined): boolean {
  return environment.id === name || labelOf(environment) === name;
}
