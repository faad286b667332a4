/** One environment: its arguments, the fields of its rows, its needs. */
import { Link } from "@tanstack/react-router";
import { useParam } from "../../address.ts";
import { api } from "../../client.ts";
import { Fact, Facts } from "../../components/facts.tsx";
import { JsonView } from "../../components/json-view.tsx";
import { ResourcePage } from "../../components/resource.tsx";

export function Page() {
  const id = useParam("id");
  return (
    <ResourcePage
      noun="environment"
      id={id}
      load={(options) => api.environments.get(id, options)}
      nameOf={(environment) => `${environment.id}@${environment.version}`}
    >
      {(environment) => (
        <>
          <p>
            <Link
              className="button"
              to="/runs/new"
              search={{ environment: `${environment.id}@${environment.version}` } as never}
            >
              New run
            </Link>
          </p>
          <Facts>
            <Fact name="Digest">
              <code>{environment.digest}</code>
            </Fact>
            <Fact name="Tasks">{environment.dataset ?? "depends on its arguments"}</Fact>
            <Fact name="Judges">{environment.judges.join(", ") || "none"}</Fact>
            <Fact name="Needs">{environment.needs.join(", ") || "nothing"}</Fact>
          </Facts>
          <h2>Arguments</h2>
          <JsonView value={environment.args} what="JSON Schema of the arguments" />
          {environment.row !== null && (
            <>
              <h2>Rows</h2>
              <JsonView value={environment.row} what="JSON Schema of a row" />
            </>
          )}
        </>
      )}
    </ResourcePage>
  );
}
