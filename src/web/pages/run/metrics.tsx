/** Scores by name, pass@k, and the members of a group of environments. */

import { printName } from "../../../contract/filter.ts";
import type { RunReport } from "../../../contract/report.ts";
import type { RunView } from "../../../contract/run.ts";
import { countText, NOTHING, scoreText } from "../../components/format.ts";
import { Scroll } from "../../components/scroll.tsx";
import { Shown } from "../../components/shown.tsx";
import { RewardText } from "./reward-text.tsx";
import { COUNTED, RolloutsLink, scoredBy, wordFilter } from "./rollout-links.tsx";

interface MetricTableProps {
  readonly run: string;
  readonly metrics: RunReport["metrics"];
  /** The member of a group of environments; default: all. */
  readonly member?: string;
}

export function MetricTable({ run, metrics, member }: MetricTableProps) {
  const names = Object.keys(metrics);
  if (names.length === 0) return null;
  const only = member === undefined ? "" : ` ${wordFilter("member", member)}`;
  return (
    <section aria-label={member === undefined ? "Metrics" : `Metrics of ${member}`}>
      {member === undefined && <h2>Metrics</h2>}
      <Scroll label={member === undefined ? "Table of metrics" : `Table of metrics of ${member}`}>
        <table>
          <thead>
            <tr>
              <th scope="col">Metric</th>
              <th scope="col" className="numeric">
                Mean
              </th>
              <th scope="col" className="numeric">
                Standard error
              </th>
              <th scope="col" className="numeric">
                Rollouts with it
              </th>
            </tr>
          </thead>
          <tbody>
            {names.map((name) => (
              <tr key={name}>
                <th scope="row">
                  <RolloutsLink run={run} filter={`${COUNTED}${only}`} sort={printName(name)}>
                    <Shown text={name} />
                  </RolloutsLink>
                </th>
                <td className="numeric">{scoreText(metrics[name]?.mean)}</td>
                <td className="numeric">{scoreText(metrics[name]?.se)}</td>
                <td className="numeric">
                  <RolloutsLink run={run} filter={`${scoredBy(name)} ${COUNTED}${only}`}>
                    {countText(metrics[name]?.n ?? 0)}
                  </RolloutsLink>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </section>
  );
}

export function PassTable({ report: { pass_at_k, pass_hat_k, pass_k } }: { readonly report: RunReport }) {
  const ks = Object.keys(pass_at_k).sort((a, b) => Number(a) - Number(b));
  if (ks.every((k) => pass_at_k[k] === null)) return null;
  const withError = (value: number | null | undefined, se: number | null | undefined) =>
    value == null ? NOTHING : `${scoreText(value)}${se == null ? "" : ` ± ${scoreText(se)}`}`;
  return (
    <section aria-labelledby="pass">
      <h2 id="pass">Over several attempts</h2>
      <Scroll label="Table of attempts">
        <table>
          <thead>
            <tr>
              <th scope="col" className="numeric">
                k
              </th>
              <th scope="col" className="numeric">
                pass@k: one of k is correct
              </th>
              <th scope="col" className="numeric">
                pass^k: all k are correct
              </th>
              <th scope="col" className="numeric">
                Tasks with k attempts
              </th>
              <th scope="col" className="numeric">
                Tasks with fewer, left out
              </th>
            </tr>
          </thead>
          <tbody>
            {ks.map((k) => (
              <tr key={k}>
                <th scope="row" className="numeric">
                  {k}
                </th>
                <td className="numeric">{withError(pass_at_k[k], pass_k?.[k]?.at_se)}</td>
                <td className="numeric">{withError(pass_hat_k[k], pass_k?.[k]?.hat_se)}</td>
                <td className="numeric">{countOf(pass_k?.[k]?.n_tasks)}</td>
                <td className="numeric">{countOf(pass_k?.[k]?.n_too_few)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </section>
  );
}

function countOf(n: number | undefined): string {
  return n === undefined ? NOTHING : countText(n);
}

/** For a group of environments: the reward and metrics of each member. */
export function Members({ run: { id, report } }: { readonly run: Pick<RunView, "id" | "report"> }) {
  const members = Object.entries(report.members ?? {});
  if (members.length === 0) return null;
  return (
    <section aria-labelledby="members">
      <h2 id="members">By environment of the group</h2>
      <Scroll label="Table of members">
        <table>
          <thead>
            <tr>
              <th scope="col">Member</th>
              <th scope="col" className="numeric">
                Mean reward (95 %)
              </th>
              <th scope="col" className="numeric">
                Tasks
              </th>
              <th scope="col" className="numeric">
                Scored
              </th>
              <th scope="col" className="numeric">
                Unscored
              </th>
              <th scope="col" className="numeric">
                Failed
              </th>
              <th scope="col" className="numeric">
                Cut off
              </th>
            </tr>
          </thead>
          <tbody>
            {members.map(([name, { reward }]) => (
              <Member key={name} run={id} name={name} reward={reward} />
            ))}
          </tbody>
        </table>
      </Scroll>
      {members.map(([name, { metrics }]) => (
        <details key={name}>
          <summary>
            Metrics of <Shown text={name} />
          </summary>
          <MetricTable run={id} metrics={metrics} member={name} />
        </details>
      ))}
    </section>
  );
}

interface MemberProps {
  readonly run: string;
  readonly name: string;
  readonly reward: RunReport["reward"];
}

function Member({ run, name, reward }: MemberProps) {
  const mine = wordFilter("member", name);
  const cell = (n: number, filter: string) => (
    <td className="numeric">
      {n === 0 ? (
        "0"
      ) : (
        <RolloutsLink run={run} filter={`${mine} ${filter} ${COUNTED}`}>
          {countText(n)}
        </RolloutsLink>
      )}
    </td>
  );
  return (
    <tr>
      <th scope="row">
        <RolloutsLink run={run} filter={`${mine} ${COUNTED}`}>
          <Shown text={name} />
        </RolloutsLink>
      </th>
      <td className="numeric">
        <RewardText reward={reward} />
      </td>
      <td className="numeric">{countText(reward.n_tasks)}</td>
      {cell(reward.n_rollouts, "outcome:scored")}
      {cell(reward.n_unscored, "outcome:unscored")}
      {cell(reward.n_error, "outcome:failed")}
      {cell(reward.n_truncated, "truncated:true")}
    </tr>
  );
}
