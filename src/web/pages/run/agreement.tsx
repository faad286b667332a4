/** How far the run's scores and judges agree with the people who reviewed its rollouts: the worst first. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { AgreementItem, RunAgreement } from "../../../contract/agreement.ts";
import { api } from "../../client.ts";
import { ErrorNote } from "../../components/error-note.tsx";
import { countText, NOTHING, percentText, scoreText } from "../../components/format.ts";
import { Scroll } from "../../components/scroll.tsx";
import { Shown } from "../../components/shown.tsx";
import { useFrozen } from "../../frozen.ts";

/** Rollouts that a row links to. */
const LINKED = 5;

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
      {data !== undefined && <AgreementTable agreement={data} />}
    </section>
  );
}

function AgreementTable({ agreement: { reviews, rollouts, items } }: { readonly agreement: RunAgreement }) {
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
              <AgreementRow key={`${item.of} ${item.name}`} item={item} />
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

function AgreementRow({ item }: { readonly item: AgreementItem }) {
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
        <Disagreements item={item} />
      </td>
    </tr>
  );
}

function Disagreements({ item: { disagreements } }: { readonly item: AgreementItem }) {
  const frozen = useFrozen();
  if (disagreements.length === 0) return NOTHING;
  const left = disagreements.length - LINKED;
  return (
    <ul className="plain row">
      {disagreements.slice(0, LINKED).map(({ rollout_id, given, people }) => {
        const text = `${String(given)}, people ${String(people)}`;
        return (
          <li key={rollout_id}>
            {frozen ? (
              <Shown text={text} most={60} />
            ) : (
              <Link to="/rollouts/$id" params={{ id: rollout_id } as never} search={{} as never}>
                <Shown text={text} most={60} />
              </Link>
            )}
          </li>
        );
      })}
      {left > 0 && <li className="soft">and {countText(left)} more</li>}
    </ul>
  );
}
