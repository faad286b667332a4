/** One dataset: its description and its first rows. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useParam } from "../../address.ts";
import { api } from "../../client.ts";
import { ErrorNote } from "../../components/error-note.tsx";
import { Fact, Facts } from "../../components/facts.tsx";
import { bytesText, countText, timeText } from "../../components/format.ts";
import { Loading } from "../../components/loading.tsx";
import { DeleteResource, ResourcePage } from "../../components/resource.tsx";
import { ShownBlock } from "../../components/shown.tsx";
import { useMay } from "../../layout/session.tsx";

/** How many rows are shown at once. */
const ROWS = 20;

export function Page() {
  const id = useParam("id");
  const mayWrite = useMay("datasets:write");
  return (
    <ResourcePage
      noun="dataset"
      id={id}
      load={(options) => api.datasets.get(id, options)}
      nameOf={(dataset) => dataset.name ?? dataset.id}
    >
      {(dataset) => (
        <>
          <Facts>
            <Fact name="Id">
              <code>{dataset.id}</code>
            </Fact>
            <Fact name="Rows">{countText(dataset.rows)}</Fact>
            <Fact name="Size">{bytesText(dataset.bytes)}</Fact>
            <Fact name="SHA-256">
              <code>{dataset.sha256}</code>
            </Fact>
            <Fact name="Checked for">{dataset.environment?.id ?? "no environment"}</Fact>
            <Fact name="Uploaded">{timeText(dataset.created_at)}</Fact>
          </Facts>
          {mayWrite && (
            <p>
              <DeleteResource noun="dataset" path="/datasets" act={() => api.datasets.delete(dataset.id)}>
                Ended runs keep their results. It cannot be deleted while a run uses it.
              </DeleteResource>
            </p>
          )}
          <h2>Rows</h2>
          <Rows id={dataset.id} rows={dataset.rows} />
        </>
      )}
    </ResourcePage>
  );
}

async function readRows(id: string, from: number, signal: AbortSignal) {
  const rows = [];
  for await (const row of api.datasets.rows(
    id,
    { after: from === 0 ? undefined : from - 1, limit: ROWS },
    { signal },
  )) {
    rows.push(row);
    if (rows.length === ROWS) break;
  }
  return rows;
}

function Rows({ id, rows }: { readonly id: string; readonly rows: number }) {
  const [from, setFrom] = useState(0);
  const { data, error, refetch } = useQuery({
    queryKey: ["dataset", id, "rows", from],
    queryFn: ({ signal }) => readRows(id, from, signal),
  });
  return (
    <>
      {error !== null && <ErrorNote error={error} onRetry={() => refetch()} />}
      {data === undefined && error === null && <Loading what="rows" />}
      <div className="columns dataset-rows">
        {data?.map(({ index, row }) => (
          <section key={index} aria-label={`Row ${index}`}>
            <h3>Row {countText(index)}</h3>
            <ShownBlock text={JSON.stringify(row, null, 2)} />
          </section>
        ))}
      </div>
      <p className="row">
        <button type="button" disabled={from === 0} onClick={() => setFrom(Math.max(0, from - ROWS))}>
          Earlier rows
        </button>
        <button type="button" disabled={from + ROWS >= rows} onClick={() => setFrom(from + ROWS)}>
          Later rows
        </button>
      </p>
    </>
  );
}
