/**
 * The report of a run at a public link, for anyone who has the link, until it expires or is revoked. The link's token
 * is after the `#` of the URL, which browsers do not send; the page sends it only to the API.
 */
import { useQuery } from "@tanstack/react-query";
import { useLocation } from "@tanstack/react-router";
import type { SharedReport } from "../../../sharing/wire.ts";
import { api } from "../../client.ts";
import { Badge } from "../../components/badge.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { Fact, Facts } from "../../components/facts.tsx";
import { timeText } from "../../components/format.ts";
import { Loading } from "../../components/loading.tsx";
import { OutcomeBar } from "../../components/outcome-bar.tsx";
import { Shown } from "../../components/shown.tsx";
import { Frozen } from "../../frozen.ts";
import { useDocumentTitle } from "../../layout/title.ts";
import { Members, MetricTable, PassTable } from "../run/metrics.tsx";
import { Outcomes } from "../run/outcomes.tsx";
import { Numbers } from "../run/overview.tsx";
import { HistogramFigure } from "../run/run-histogram.tsx";
import "../run/run.css";

export function Page() {
  const { hash: token } = useLocation();
  const { data, error } = useQuery({
    queryKey: ["shared", token],
    queryFn: ({ signal }) => api.reportLinks.read(token, { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });
  useDocumentTitle(data === undefined ? "Report" : nameOf(data));
  return (
    <main className="run report">
      {data === undefined && <h1>Report</h1>}
      {error !== null && <ErrorNote error={error} />}
      {data === undefined && error === null && <Loading what="the report" />}
      {data !== undefined && (
        <Frozen value={true}>
          <Report report={data} />
        </Frozen>
      )}
    </main>
  );
}

function nameOf({ name, kind, environment }: SharedReport): string {
  return name ?? `${kind} of ${environment.id}`;
}

function Report({ report: shared }: { readonly report: SharedReport }) {
  const { environment, counts, report, histogram } = shared;
  const run = { id: "", counts, report, status: shared.status };
  return (
    <>
      <h1 className="row">
        <Shown text={nameOf(shared)} /> <Badge state={shared.status} />
      </h1>
      <Facts>
        <Fact name="Environment">
          <Shown text={`${environment.id}@${environment.version}`} />
        </Fact>
        <Fact name="Model">
          <Shown text={shared.model} />
        </Fact>
        <Fact name="Begun">{timeText(shared.created_at)}</Fact>
        <Fact name="Ended">{shared.finished_at === null ? "not yet" : timeText(shared.finished_at)}</Fact>
      </Facts>
      <Numbers run={run} />
      <OutcomeBar counts={counts} legend />
      <div className="columns">
        {histogram !== null && histogram.bins.length > 0 && (
          <section aria-labelledby="spread">
            <h2 id="spread">Distribution</h2>
            <HistogramFigure histogram={histogram} />
          </section>
        )}
        <section aria-labelledby="outcomes">
          <h2 id="outcomes">Outcomes</h2>
          <Outcomes run={run} />
        </section>
      </div>
      <MetricTable run="" metrics={report.metrics} />
      <PassTable report={report} />
      <Members run={run} />
      <p className="soft">This link expires {timeText(shared.expires_at)}.</p>
    </>
  );
}
