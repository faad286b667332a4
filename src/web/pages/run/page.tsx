/** One run: its settings, its status, its result. */
import { lazy, Suspense, useMemo } from "react";
import type { RunView } from "../../../contract/run.ts";
import { useParam } from "../../address.ts";
import { ErrorNote } from "../../components/error-note.tsx";
import { JsonView } from "../../components/json-view.tsx";
import { Loading } from "../../components/loading.tsx";
import { type Tab, Tabs } from "../../components/tabs.tsx";
import { useDocumentTitle } from "../../layout/title.ts";
import { GroupsTab } from "./groups.tsx";
import { RunHead } from "./head.tsx";
import { EvalOverview } from "./overview.tsx";
import { Settings } from "./settings.tsx";
import { hasTools, ToolsTab } from "./tools.tsx";
import { useRun } from "./use-run.ts";
import "./run.css";

const TrainingOverview = lazy(async () => ({ default: (await import("./training.tsx")).TrainingOverview }));

export function Page() {
  const id = useParam("id");
  const { run, error, refetch, live } = useRun(id);
  useDocumentTitle(run?.name ?? `Run ${id}`);
  if (run === undefined) {
    return (
      <main>
        <h1>Run</h1>
        {error === null ? <Loading what="the run" /> : <ErrorNote error={error} onRetry={refetch} />}
      </main>
    );
  }
  return (
    <main className="run">
      <RunHead run={run} live={live} />
      {error !== null && <ErrorNote error={error} onRetry={refetch} />}
      <RunTabs run={run} />
    </main>
  );
}

function RunTabs({ run }: { readonly run: RunView }) {
  const tabs = useMemo<readonly Tab[]>(() => {
    const overview: Tab =
      run.kind === "training"
        ? { id: "training", name: "Training", body: () => <Training run={run} /> }
        : { id: "overview", name: "Overview", body: () => <EvalOverview run={run} /> };
    const report: Tab = { id: "report", name: "Report", body: () => <EvalOverview run={run} /> };
    return [
      overview,
      ...(run.kind === "training" ? [report] : []),
      { id: "groups", name: "Groups", body: () => <GroupsTab run={run} /> },
      ...(hasTools(run) ? [{ id: "tools", name: "Tools", body: () => <ToolsTab run={run} /> }] : []),
      { id: "settings", name: "Settings", body: () => <Settings run={run} /> },
      { id: "json", name: "JSON", body: () => <JsonView value={run} what="the run as JSON" /> },
    ];
  }, [run]);
  return <Tabs label="Sections of the run" tabs={tabs} />;
}

function Training({ run }: { readonly run: RunView }) {
  return (
    <Suspense fallback={<Loading what="the training" />}>
      <TrainingOverview run={run} />
    </Suspense>
  );
}
