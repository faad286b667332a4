/** Runs of the last days that failed, and evals whose gates were not met. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { GATE_KEY, type GateVerdict } from "../../../contract/gate.ts";
import type { RunView } from "../../../contract/run.ts";
import { api } from "../../client.ts";
import { Badge } from "../../components/badge.tsx";
import { Shown } from "../../components/shown.tsx";
import { Ago } from "../../components/time.tsx";

const MOST = 5;
const DAYS_S = 7 * 86_400;
const FAILED: GateVerdict = "failed";

export function Failed({ runs }: { readonly runs: readonly RunView[] }) {
  const now = Date.now() / 1000;
  const { data } = useQuery({
    queryKey: ["runs", "home", "gates"],
    queryFn: ({ signal }) => api.runs.list({ metadata: { [GATE_KEY]: FAILED }, limit: MOST }, { signal }),
    refetchInterval: 60_000,
  });
  const gated = (data?.data ?? []).filter(({ created_at }) => created_at > now - DAYS_S);
  const broken = runs.filter(({ status, created_at }) => status === "failed" && created_at > now - DAYS_S);
  return (
    <section>
      <h2>Failed in the last 7 days</h2>
      {gated.length + broken.length === 0 && <p className="soft">No run failed, and no gate.</p>}
      <ul className="home-list">
        {gated.map((run) => (
          <FailedRun key={run.id} run={run}>
            <Badge state="gate failed" tone="bad" />
          </FailedRun>
        ))}
        {broken.slice(0, MOST).map((run) => (
          <FailedRun key={run.id} run={run}>
            <Badge state="failed" />
          </FailedRun>
        ))}
      </ul>
      {broken.length > MOST && (
        <p>
          <Link to="/runs" search={{ status: "failed" } as never}>
            All failed runs
          </Link>
        </p>
      )}
    </section>
  );
}

function FailedRun({ run, children }: { readonly run: RunView; readonly children: ReactNode }) {
  const { id, name, environment, model, error, created_at } = run;
  return (
    <li>
      <div className="row spread">
        <Link to="/runs/$id" params={{ id }} search={{}}>
          <Shown text={name ?? id} most={120} />
        </Link>
        {children}
      </div>
      <p className="soft">
        <Shown text={environment.id} /> · <Shown text={model} /> · begun <Ago at={created_at} />
      </p>
      {error !== null && (
        <p>
          <Shown text={error.message} most={300} />
        </p>
      )}
    </li>
  );
}
