/** The environments that a run may name: those of the deployment, and those that organisations published. */
import { Link } from "@tanstack/react-router";
import type { EnvironmentView } from "../../../contract/run.ts";
import { useAddress } from "../../address.ts";
import { api } from "../../client.ts";
import { Badge } from "../../components/badge.tsx";
import type { Column } from "../../components/data-table.tsx";
import { ResourcesPage } from "../../components/resource.tsx";
import { SearchField } from "../../components/search-field.tsx";
import { Shown } from "../../components/shown.tsx";
import { statesOf } from "./versions.tsx";
import "./environments.css";

const COLUMNS: readonly Column<EnvironmentView>[] = [
  { id: "name", header: "Environment", cell: ({ id }) => <Shown text={id} /> },
  { id: "description", header: "Description", least: 24, cell: Description },
  { id: "version", header: "Version", width: 10, cell: ({ version }) => version },
  { id: "from", header: "From", width: 16, cell: ({ published }) => published?.visibility ?? "this deployment" },
  { id: "needs", header: "Needs", width: 16, cell: ({ needs }) => <Shown text={needs.join(", ") || "nothing"} /> },
  { id: "runs", header: "Runs", width: 10, cell: NewRun },
];

export function Page() {
  const [search, change] = useAddress();
  const text = search["search"] ?? "";
  const owner = search["owner"];
  return (
    <ResourcesPage
      title="Environments"
      noun="environments"
      of={JSON.stringify([text, owner])}
      list={({ limit, after }, options) =>
        api.environments.list({ search: text || undefined, owner, limit, after }, options)
      }
      columns={COLUMNS}
      idOf={({ id }) => id}
      path="/environments"
      rowHeight={60}
      empty={text === "" ? <p>No environments.</p> : <p>No environment has this text in its name or description.</p>}
    >
      <div className="row environment-search">
        <SearchField
          value={text}
          onChange={(next) => change({ search: next || undefined })}
          placeholder="name or description"
          action="search environments"
          most={100}
        />
        {owner !== undefined && (
          <button type="button" className="quiet" onClick={() => change({ owner: undefined })}>
            Only of <Shown text={owner} />: show all
          </button>
        )}
      </div>
    </ResourcesPage>
  );
}

function Description({ published }: EnvironmentView) {
  if (published === null) return <span className="soft">comes with the deployment</span>;
  const states = statesOf(published);
  return (
    <>
      <Shown text={published.description ?? ""} most={200} />
      {states.length > 0 && (
        <span className="environment-states">
          {states.map(({ state, tone, reason }) => (
            <Badge key={state} state={state} tone={tone} title={reason} />
          ))}
        </span>
      )}
    </>
  );
}

function NewRun({ id, version, published }: EnvironmentView) {
  if (published?.kind === "python") return <span className="soft">not played here</span>;
  return (
    <Link to="/runs/new" search={{ environment: `${id}@${version}` } as never}>
      New run
    </Link>
  );
}
