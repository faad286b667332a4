/**
 * Compares one run with several others task by task: a candidate with its baselines, or several candidates with one
 * baseline. The URL holds the runs, their roles, the compared score, the listed tasks and the marked differences.
 */
import { useAddress } from "../../address.ts";
import { Loading } from "../../components/loading.tsx";
import { useDocumentTitle } from "../../layout/title.ts";
import { type Asked, askedOf } from "./asked.ts";
import { Comparisons } from "./comparisons.tsx";
import { LearningCurves } from "./learning-curves.tsx";
import { RunPicker } from "./run-picker.tsx";
import { useComparedRuns } from "./use-compared-runs.ts";
import "./compare.css";

export function Page() {
  useDocumentTitle("Compare");
  const [search] = useAddress();
  const asked = askedOf(search);
  return (
    <main className="compare">
      <h1>Compare runs</h1>
      <RunPicker asked={asked} />
      {asked.others.length > 0 && <Compared asked={asked} />}
    </main>
  );
}

/** Trainings are compared by their curves first; their tasks are compared on request. */
function Compared({ asked }: { readonly asked: Asked }) {
  const [search, change] = useAddress();
  const { runs, isPending } = useComparedRuns(asked.runs);
  if (isPending) return <Loading what="the runs" />;
  const trainings = runs.filter(({ kind }) => kind === "training");
  if (trainings.length < 2) return <Comparisons asked={asked} runs={runs} />;
  const isOpen = trainings.length < runs.length || search["view"] === "tasks";
  return (
    <>
      <LearningCurves runs={trainings} />
      <p>
        <button
          type="button"
          aria-expanded={isOpen}
          onClick={() => change({ view: isOpen ? undefined : "tasks" }, { replace: false })}
        >
          Compare them task by task
        </button>
      </p>
      {isOpen && <Comparisons asked={asked} runs={runs} />}
    </>
  );
}
