/** The outcomes of rollouts, class by class, with the first error of each class that did not end well. */

import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { RunView } from "../../../contract/run.ts";
import { stopText } from "../../../contract/stop-text.ts";
import { type BadEnd, badEndsOf } from "../../../sdk/report-file.ts";
import { api } from "../../client.ts";
import { countText, words } from "../../components/format.ts";
import { Shown } from "../../components/shown.tsx";
import { useFrozen } from "../../frozen.ts";
import { hasEnded } from "./progress.ts";
import { COUNTED, RolloutsLink, wordFilter } from "./rollout-links.tsx";

/** The fields of a run that are shown. */
type Ends = Pick<RunView, "id" | "counts" | "report" | "status">;

export function Outcomes({ run }: { readonly run: Ends }) {
  const { id, report } = run;
  const classes = badEndsOf(run);
  const stops = Object.entries(report.stop_conditions).sort(([, a], [, b]) => b - a);
  return (
    <>
      {classes.length === 0 && <p>All ended rollouts are scored.</p>}
      <ul className="plain outcome-classes">
        {classes.map((one) => (
          <li key={`${one.outcome} ${one.reason}`}>
            <RolloutsLink run={id} filter={one.filter}>
              {countText(one.n)} {one.outcome}: {words(one.reason)}
            </RolloutsLink>
            <FirstError run={run} of={one} />
          </li>
        ))}
      </ul>
      {stops.length > 0 && (
        <>
          <h3>Why they stopped</h3>
          <ul className="plain">
            {stops.map(([stop, n]) => (
              <li key={stop}>
                <RolloutsLink run={id} filter={`${wordFilter("stop", stop)} ${COUNTED}`}>
                  {countText(n)} {words(stopText(stop))}
                </RolloutsLink>
              </li>
            ))}
          </ul>
        </>
      )}
    </>
  );
}

/** The key in the cache: the answer does not change after the run has ended. */
export function firstKey(run: Pick<Ends, "id" | "status">, filter: string): readonly unknown[] {
  return ["rollouts", run.id, "first", filter, hasEnded(run)];
}

/** Requested once: the first error of a class does not change. */
function FirstError({ run, of }: { readonly run: Ends; readonly of: BadEnd }) {
  const { filter } = of;
  const frozen = useFrozen();
  const { data } = useQuery({
    queryKey: firstKey(run, filter),
    queryFn: async ({ signal }) => {
      const page = await api.rollouts.list(run.id, { filter, sort: "ended", limit: 1 }, { signal });
      return page.data[0] ?? null;
    },
    staleTime: Number.POSITIVE_INFINITY,
    // A report file contains it; a link to a report does not show it.
    enabled: !frozen,
  });
  const first = data ?? null;
  if (first === null) return null;
  return (
    <p className="soft first-error">
      {first.error !== null && (
        <>
          <code>
            <Shown text={first.error.error} />
          </code>
          : <Shown text={first.error.message} />{" "}
        </>
      )}
      {frozen ? (
        <code>{first.id}</code>
      ) : (
        <Link to="/rollouts/$id" params={{ id: first.id }} search={{}}>
          Examples
        </Link>
      )}
    </p>
  );
}
