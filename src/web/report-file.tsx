/**
 * The entry point of a report file. It shows the overview of a run, from the data in the file and with the same
 * components as the page. It sends no requests, and its content security policy would block them.
 */
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { createMemoryHistory, createRootRoute, createRouter, RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import type { ReportFile } from "../contract/report-file.ts";
import { countText, timeText } from "./components/format.ts";
import { Shown } from "./components/shown.tsx";
import { Frozen } from "./frozen.ts";
import { KeyProvider } from "./layout/keys.tsx";
import { agreementKey } from "./pages/run/agreement.tsx";
import { firstKey } from "./pages/run/outcomes.tsx";
import { histogramKey } from "./pages/run/run-histogram.tsx";
import { FrozenReport } from "./pages/shared/frozen-report.tsx";
import { FrozenRollouts } from "./pages/shared/frozen-rollouts.tsx";
import "./styles/base.css";
import "./styles/layout.css";
import "./styles/components.css";

const file: ReportFile = JSON.parse(document.getElementById("report")?.textContent ?? "null");
const queries = new QueryClient({ defaultOptions: { queries: { staleTime: Number.POSITIVE_INFINITY, retry: false } } });
for (const [of, histogram] of Object.entries(file.histograms)) {
  queries.setQueryData(histogramKey(file.run.id, of), histogram);
}
queries.setQueryData(agreementKey(file.run.id), file.agreement);
for (const [filter, first] of Object.entries(file.firsts)) queries.setQueryData(firstKey(file.run, filter), first);

function Report() {
  const { run, rollouts, left_out } = file;
  return (
    <main className="page run">
      <FrozenReport run={run} />
      <h2>Rollouts</h2>
      {left_out > 0 && (
        <p>
          This file has only the {countText(rollouts.length)} rollouts that were dispatched first, and leaves out{" "}
          {countText(left_out)} more.
        </p>
      )}
      <FrozenRollouts rollouts={rollouts} />
      <footer className="soft">
        <p>
          Run <Shown text={run.id} />, saved {timeText(file.exported_at)} from Rollcall.
        </p>
      </footer>
    </main>
  );
}

const router = createRouter({
  routeTree: createRootRoute({ component: Report }),
  history: createMemoryHistory({ initialEntries: ["/"] }),
});
document.title = `${file.run.name ?? file.run.id} · Rollcall`;
const root = document.getElementById("root");
if (root === null) throw new Error("the file has no element with the id root");
createRoot(root).render(
  <StrictMode>
    <Frozen value={true}>
      <QueryClientProvider client={queries}>
        <KeyProvider>
          <RouterProvider router={router} />
        </KeyProvider>
      </QueryClientProvider>
    </Frozen>
  </StrictMode>,
);
