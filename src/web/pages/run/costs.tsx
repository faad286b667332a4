/** The cost and the time of a run, by who did the work. An unknown value is shown as unknown, never as 0. */
import type { RunView } from "../../../contract/run.ts";
import { costText, countText, dollarsText, NOTHING, numberText } from "../../components/format.ts";
import { Scroll } from "../../components/scroll.tsx";

interface Role {
  readonly name: string;
  readonly calls: number | null;
  readonly input: number | null;
  readonly output: number | null;
  readonly micros: number | null;
  readonly unknown: string;
}

function rolesOf({ report, cost }: RunView): readonly Role[] {
  const { judge } = report.usage;
  return [
    {
      name: "Policy",
      calls: report.calls,
      input: report.usage.prompt_tokens,
      output: report.usage.completion_tokens,
      micros: cost.policy_micros,
      unknown: "The policy's cost is unknown: its endpoint has no prices.",
    },
    {
      name: "Judges",
      calls: judge?.calls ?? 0,
      input: judge?.prompt_tokens ?? 0,
      output: judge?.completion_tokens ?? 0,
      micros: cost.judge_micros,
      unknown: "The judges' cost is unknown: an endpoint has no prices, or a reply had no usage.",
    },
    { name: "Platform", calls: null, input: null, output: null, micros: cost.charged_micros, unknown: "" },
  ];
}

export function CostByRole({ run }: { readonly run: RunView }) {
  const roles = rolesOf(run);
  const text = (n: number | null) => (n === null ? NOTHING : countText(n));
  return (
    <section aria-labelledby="costs">
      <h2 id="costs">Cost</h2>
      <Scroll label="Table of costs">
        <table>
          <thead>
            <tr>
              <th scope="col">Of ended rollouts</th>
              <th scope="col" className="numeric">
                Calls
              </th>
              <th scope="col" className="numeric">
                Tokens in
              </th>
              <th scope="col" className="numeric">
                Tokens out
              </th>
              <th scope="col" className="numeric">
                Cost
              </th>
            </tr>
          </thead>
          <tbody>
            {roles.map(({ name, calls, input, output, micros }) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td className="numeric">{text(calls)}</td>
                <td className="numeric">{text(input)}</td>
                <td className="numeric">{text(output)}</td>
                <td className="numeric">{micros === null ? "unknown" : dollarsText(micros)}</td>
              </tr>
            ))}
            <tr>
              <th scope="row">Total</th>
              <td />
              <td />
              <td />
              <td className="numeric">{costText(run.cost)}</td>
            </tr>
          </tbody>
        </table>
      </Scroll>
      {roles.map(
        ({ name, micros, unknown }) =>
          micros === null && (
            <p key={name} className="soft">
              {unknown}
            </p>
          ),
      )}
      <UncountedCalls report={run.report} />
    </section>
  );
}

function UncountedCalls({ report: { turns, usage, lost_reservations } }: Pick<RunView, "report">) {
  const { lost, reused } = usage;
  return (
    <>
      {reused !== undefined && (
        <p className="soft">
          {countText(reused.turns)} of {countText(turns)} turns were answered from the cache, with{" "}
          {countText(reused.tokens)} tokens that cost nothing and are not counted above.
        </p>
      )}
      {lost !== undefined && (
        <p className="soft">
          {callsText(lost.calls)} {lost.calls === 1 ? "was" : "were"} lost, with unknown cost
          {lost.micros !== null && `, ${dollarsText(lost.micros)} at most`}.
        </p>
      )}
      {lost_reservations !== undefined && lost_reservations.calls > 0 && (
        <p className="soft">
          {dollarsText(lost_reservations.micros)} of the cap is reserved for {callsText(lost_reservations.calls)} that
          were lost.
        </p>
      )}
      {lost_reservations?.released !== undefined && (
        <p className="soft">
          {dollarsText(lost_reservations.released.micros)} that was reserved for{" "}
          {callsText(lost_reservations.released.calls)} is released.
        </p>
      )}
    </>
  );
}

function callsText(calls: number): string {
  return `${countText(calls)} ${calls === 1 ? "call" : "calls"}`;
}

export function LatencyByRole({ run: { report } }: { readonly run: RunView }) {
  const added = report.latency?.platform_ms;
  return (
    <section aria-labelledby="latency">
      <h2 id="latency">Latency</h2>
      {added === undefined ? (
        <p className="soft">No answers yet.</p>
      ) : (
        <dl className="facts">
          <dt>The platform adds to a turn</dt>
          <dd>
            {milliseconds(added.p50)} (p50), {milliseconds(added.p99)} (p99), at most
          </dd>
        </dl>
      )}
      <p className="soft">
        For the duration of whole rollouts, including the model, see “Distribution”; the time of each turn is on its
        rollout.
      </p>
    </section>
  );
}

function milliseconds(value: number | null): string {
  return value === null ? NOTHING : `${numberText(value)} ms`;
}
