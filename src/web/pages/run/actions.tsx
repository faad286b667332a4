/** The actions on a run in its current state, for users who may do them. */
import { useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import type { RunView } from "../../../contract/run.ts";
import { api } from "../../client.ts";
import { ActionButton } from "../../components/action-button.tsx";
import { ConfirmButton } from "../../components/confirm-button.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { countText, sum } from "../../components/format.ts";
import { useMay } from "../../layout/session.tsx";
import { ExportRun } from "./export.tsx";
import { hasEnded } from "./progress.ts";

export function RunActions({ run }: { readonly run: RunView }) {
  const mayWrite = useMay("runs:write");
  const [exporting, setExporting] = useState(false);
  return (
    <div className="row">
      {mayWrite && <Steering run={run} />}
      {mayWrite && hasEnded(run) && <After run={run} />}
      {mayWrite && (
        <Link to="/runs/new" search={{ from: run.id } as never} className="button">
          Start a similar run
        </Link>
      )}
      <button type="button" onClick={() => setExporting(true)}>
        Share or export
      </button>
      <Dialog title="Share or export" open={exporting} onClose={() => setExporting(false)}>
        <ExportRun run={run} />
      </Dialog>
      {mayWrite && hasEnded(run) && <DeleteRun run={run} />}
    </div>
  );
}

function useAgain(id: string): () => void {
  const queries = useQueryClient();
  return () => {
    queries.invalidateQueries({ queryKey: ["run", id] }).catch(reportError);
  };
}

/** Pauses, resumes or cancels a run that has not ended. */
function Steering({ run }: { readonly run: RunView }) {
  const { id, status, counts } = run;
  const again = useAgain(id);
  if (hasEnded(run)) return null;
  return (
    <>
      {status === "paused" ? (
        <ActionButton act={() => api.runs.resume(id)} changes={["run"]}>
          Resume
        </ActionButton>
      ) : (
        <ActionButton act={() => api.runs.pause(id)} changes={["run"]}>
          Pause
        </ActionButton>
      )}
      <ConfirmButton name="Cancel run" act={() => api.runs.cancel(id)} onDone={again}>
        <p>
          {countText(counts.in_flight)} rollouts in flight end as cancelled, and {countText(counts.pending)} are never
          started. Ended rollouts stay. A cancelled run cannot continue.
        </p>
      </ConfirmButton>
    </>
  );
}

/** Retries the failed rollouts of an ended run, or rescores it. */
function After({ run }: { readonly run: RunView }) {
  const { id, counts, status } = run;
  const navigate = useNavigate();
  const again = useAgain(id);
  const missing = sum(counts.failed) + sum(counts.unscored) + (counts.cancelled["deadline"] ?? 0);
  const rescore = async () => {
    const { id: made } = await api.runs.rescore(id);
    await navigate({ to: "/runs/$id", params: { id: made }, search: {} });
  };
  return (
    <>
      {missing > 0 && status !== "cancelled" && (
        <ConfirmButton name="Retry" act={() => api.runs.retry(id)} onDone={again}>
          <p>
            {countText(missing)} rollouts that failed, have no score or were cut off by the deadline get another
            attempt, which replaces them.
          </p>
        </ConfirmButton>
      )}
      {counts.scored + sum(counts.unscored) > 0 && (
        <ConfirmButton name="Rescore" act={rescore}>
          <p>
            A new run scores these rollouts again, with the newest rubric of the environment. The model is not called;
            judges are. To use another environment or other judges, run <code>rollcall rescore {id}</code>.
          </p>
        </ConfirmButton>
      )}
    </>
  );
}

function DeleteRun({ run: { id, counts } }: { readonly run: RunView }) {
  const navigate = useNavigate();
  const queries = useQueryClient();
  const gone = async () => {
    await navigate({ to: "/runs", search: {} });
    queries.removeQueries({ queryKey: ["run", id] });
    await queries.invalidateQueries({ queryKey: ["runs"] });
  };
  return (
    <ConfirmButton name="Delete run" destroys act={() => api.runs.delete(id)} onDone={() => gone().catch(reportError)}>
      <p>The run, its {countText(counts.dispatched)} rollouts, its results and its exports are deleted for good.</p>
    </ConfirmButton>
  );
}
