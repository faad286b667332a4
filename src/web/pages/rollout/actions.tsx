/** Actions on a rollout: fork it from one of its turns, rescore its run, cancel it. */
import { useMutation } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import type { RolloutHead } from "../../../contract/turns.ts";
import { api, queryClient } from "../../client.ts";
import { ConfirmButton } from "../../components/confirm-button.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { useMay } from "../../layout/session.tsx";

function useOpenRun(): (id: string) => void {
  const navigate = useNavigate();
  return (id) => {
    navigate({ to: "/runs/$id", params: { id } as never, search: {} as never }).catch(reportError);
  };
}

/** Only for a rollout that has ended, and for users who may start runs. */
export function ForkButton({ head, turn }: { readonly head: RolloutHead; readonly turn: number }) {
  const may = useMay("runs:write");
  const [open, setOpen] = useState(false);
  if (!may || head.status !== "done") return null;
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>
        Fork here
      </button>
      <Dialog title={`Fork after turn ${turn + 1}`} open={open} onClose={() => setOpen(false)}>
        <ForkForm id={head.id} turn={turn} />
      </Dialog>
    </>
  );
}

function ForkForm({ id, turn }: { readonly id: string; readonly turn: number }) {
  const openRun = useOpenRun();
  const [rollouts, setRollouts] = useState("1");
  const [model, setModel] = useState("");
  const { mutate, isPending, error } = useMutation({
    mutationFn: () => api.rollouts.fork(id, { turn, rollouts: Number(rollouts), ...(model !== "" && { model }) }),
    onSuccess: (run) => openRun(run.id),
  });
  return (
    <form
      className="fields"
      onSubmit={(event) => {
        event.preventDefault();
        mutate();
      }}
    >
      <p>A new run starts with the turns up to this one. The next turn is sampled again.</p>
      <label>
        Rollouts
        <input
          type="number"
          min={1}
          max={1024}
          required
          value={rollouts}
          onChange={(event) => setRollouts(event.target.value)}
        />
      </label>
      <label>
        Model, if different
        <input value={model} maxLength={500} onChange={(event) => setModel(event.target.value)} />
      </label>
      {error !== null && <ErrorNote error={error} />}
      <p className="row">
        <button type="submit" className="primary" disabled={isPending}>
          Start the run
        </button>
      </p>
    </form>
  );
}

export function RolloutActions({ head }: { readonly head: RolloutHead }) {
  const openRun = useOpenRun();
  const [mayStart, mayCancel] = [useMay("runs:write"), useMay("rollouts:write")];
  const rescore = async () => openRun((await api.runs.rescore(head.run_id)).id);
  const again = () => queryClient.invalidateQueries({ queryKey: ["rollout", head.id] });
  return (
    <p className="row">
      {mayStart && (
        <ConfirmButton name="Rescore run" act={rescore}>
          A new run scores the rollouts of this run again. The policy is not called.
        </ConfirmButton>
      )}
      {mayCancel && head.status !== "done" && (
        <ConfirmButton name="Cancel rollout" act={() => api.rollouts.cancel(head.id)} onDone={again}>
          It ends as cancelled. Its run continues.
        </ConfirmButton>
      )}
      <a className="button" href={`/v1/rollouts/${encodeURIComponent(head.id)}`} download={`${head.id}.json`}>
        Download JSON
      </a>
    </p>
  );
}
