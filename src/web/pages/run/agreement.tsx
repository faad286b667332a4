/** How far the run's scores and judges agree with the people who reviewed its rollouts: the worst first. */
import { useQuery } from "@tanstack/react-query";
import type { AgreementItem, RunAgreement } from "../../../contract/agreement.ts";
import { api } from "../../client.ts";
import { ErrorNote } from "../../components/error-note.tsx";
import { countText, NOTHING, percentText, scoreText } from "../../components/format.ts";
import { Scroll } from "../../components/scroll.tsx";
import { Shown } from "../../components/shown.tsx";
import { useFrozen } from "../../frozen.ts";
import { Disagreements } from "./disagreements.tsx";

export function agreementKey(runId: string): readonly string[] {
  return ["agreement", runId];
}

export function Agreement({ run }: { readonly run: string }) {
  const frozen = useFrozen();
  const { data, error, refetch } = useQuery({
    queryKey: agreementKey(run),
    queryFn: ({ signal }) => api.runs.agreement(run, { signal }),
    enabled: !frozen,
  });
  if (data === undefined && error === null) return null;
  return (
    <section aria-labelledby="judges-and-people">
      <h2 id="judges-and-people">Judges and people</h2>
      {error !== null && <ErrorNote error={error} onRetry={() => refetch()} />}
      {data !== undefined && <AgreementTable run={run} agreement={data} />}
    </section>
  );
}

interface AgreementTableProps {
  readonly run: string;
  readonly agreement: RunAgreement;
}

function AgreementTable({ run, agreement: { reviews, rollouts, items } }: AgreementTableProps) {
  const reviewed = items.filter(({ n, people }) => n > 0 || people.pairs > 0);
  if (reviewed.length === 0) {
    return (
      <p className="soft">
        {reviews === 0 ? "No rollout has a review yet. " : `${countText(reviews)} reviews, none with a value. `}
        Give values in the review of a rollout, to see which judge disagrees with people.
      </p>
    );
  }
  return (
    <>
      <p className="soft">
        {countText(reviews)} reviews of {countText(rollouts)} rollouts. κ is 1 if both always agree, and 0 if they agree
        as often as by chance. The worst comes first.
      </p>
      <Scroll label="Table of agreement">
        <table>
          <thead>
            <tr>
              <th scope="col">Score or judge</th>
              {["κ", "95 %", "Agree", "Rollouts", "People agree"].map((name) => (
                <th key={name} scope="col" className="numeric">
                  {name}
                </th>
              ))}
              <th scope="col">Rollouts that differ</th>
            </tr>
          </thead>
          <tbody>
            {reviewed.map((item) => (
              <AgreementRow key={`${item.of} ${item.name}`} run={run} item={item} />
            ))}
          </tbody>
        </table>
      </Scroll>
    </>
  );
}

const WHY_NONE = {
  too_few: "fewer than two rollouts",
  one_value: "only one value",
  too_large: "values too large",
} as const;

function AgreementRow({ run, item }: { readonly run: string; readonly item: AgreementItem }) {
  const { of, name, n, kappa, ci95, reason, agreement, people } = item;
  return (
    <tr>
      <th scope="row">{of === "reward" ? "Reward" : <Shown text={`${of} ${name}`} most={200} />}</th>
      <td className="numeric">
        {kappa === null ? <span className="soft">{WHY_NONE[reason ?? "too_few"]}</span> : scoreText(kappa)}
      </td>
      <td className="numeric">{ci95 === null ? NOTHING : `${scoreText(ci95[0])} to ${scoreText(ci95[1])}`}</td>
      <td className="numeric">{percentText(agreement)}</td>
      <td className="numeric">{countText(n)}</td>
      <td className="numeric">{percentText(people.agreement)}</td>
      <td>
        <Disagreements run={run} item={item} />
      </td>
    </tr>
  );
}
