/** The environments that a run may name. */
import { Link } from "@tanstack/react-router";
import { ErrorNote } from "../../components/error-note.tsx";
import { Loading } from "../../components/loading.tsx";
import { Scroll } from "../../components/scroll.tsx";
import { useEnvironments } from "../../components/use-environments.ts";
import { useDocumentTitle } from "../../layout/title.ts";

export function Page() {
  useDocumentTitle("Environments");
  const { data, error, refetch } = useEnvironments();
  return (
    <main>
      <h1>Environments</h1>
      {error !== null && <ErrorNote error={error} onRetry={() => refetch()} />}
      {data === undefined && error === null && <Loading what="environments" />}
      {data !== undefined && (
        <Scroll label="Environments">
          <table>
            <thead>
              <tr>
                <th scope="col">Environment</th>
                <th scope="col">Version</th>
                <th scope="col">Tasks</th>
                <th scope="col">Judges</th>
                <th scope="col">Needs</th>
                <th scope="col">Runs</th>
              </tr>
            </thead>
            <tbody>
              {data.map(({ id, version, dataset, judges, needs }) => (
                <tr key={`${id}@${version}`}>
                  <th scope="row">
                    <Link to="/environments/$id" params={{ id: `${id}@${version}` }} search={{}}>
                      {id}
                    </Link>
                  </th>
                  <td>{version}</td>
                  <td>{dataset ?? "depends on its arguments"}</td>
                  <td>{judges.join(", ") || "none"}</td>
                  <td>{needs.join(", ") || "nothing"}</td>
                  <td>
                    <Link to="/runs/new" search={{ environment: `${id}@${version}` } as never}>
                      New run
                    </Link>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
    </main>
  );
}
