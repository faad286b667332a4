/** The newest trainings, each with a link to its curves. */
import { Link } from "@tanstack/react-router";
import type { RunView } from "../../../contract/run.ts";
import { Badge } from "../../components/badge.tsx";
import { Shown } from "../../components/shown.tsx";
import { Ago } from "../../components/time.tsx";

const SHOWN = 5;

export function Trainings({ runs }: { readonly runs: readonly RunView[] }) {
  if (runs.length === 0) return null;
  return (
    <section>
      <h2>Trainings</h2>
      <ul className="home-list">
        {runs.slice(0, SHOWN).map(({ id, name, environment, model, status, created_at }) => (
          <li key={id}>
            <Link to="/runs/$id" params={{ id }} search={{}}>
              <Shown text={name ?? id} most={60} />
            </Link>{" "}
            {status !== "completed" && <Badge state={status} />}
            <span className="second soft">
              <Shown text={environment.id} most={60} />, <Shown text={model} most={60} />, <Ago at={created_at} />
            </span>
          </li>
        ))}
      </ul>
      {runs.length > SHOWN && (
        <p>
          <Link to="/runs" search={{ kind: "training" } as never}>
            All trainings
          </Link>
        </p>
      )}
    </section>
  );
}
