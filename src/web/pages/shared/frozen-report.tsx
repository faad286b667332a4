/** A stored report of a run: its name, its settings, and the overview of an eval. */
import type { RunView } from "../../../contract/run.ts";
import { Badge } from "../../components/badge.tsx";
import { Fact, Facts } from "../../components/facts.tsx";
import { timeText } from "../../components/format.ts";
import { Shown } from "../../components/shown.tsx";
import { EvalOverview } from "../run/overview.tsx";
import "../run/run.css";

export function FrozenReport({ run }: { readonly run: RunView }) {
  return (
    <>
      <h1 className="row">
        <Shown text={run.name ?? `${run.kind} of ${run.environment.id}`} /> <Badge state={run.status} />
      </h1>
      <Facts>
        <Fact name="Environment">
          <Shown text={`${run.environment.id}@${run.environment.version}`} />
        </Fact>
        <Fact name="Model">
          <Shown text={run.model} />
        </Fact>
        <Fact name="Begun">{timeText(run.created_at)}</Fact>
        <Fact name="Ended">{run.finished_at === null ? "not yet" : timeText(run.finished_at)}</Fact>
      </Facts>
      <EvalOverview run={run} />
    </>
  );
}
