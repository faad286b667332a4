/** The results of a rollout: its outcome, its scores, the judgements with their reasons, its errors and its cost. */

import { Link } from "@tanstack/react-router";
import { stopText } from "../../../contract/stop-text.ts";
import type { RolloutHead } from "../../../contract/turns.ts";
import { Badge } from "../../components/badge.tsx";
import { rolloutCutText } from "../../components/cut-off.ts";
import { Fact, Facts } from "../../components/facts.tsx";
import { countText, dollarsText, durationText, NOTHING, scoreText, timeText, words } from "../../components/format.ts";
import { Shown, ShownBlock } from "../../components/shown.tsx";
import { inOrder } from "./in-order.ts";
import { Judgements } from "./judgements.tsx";

export function Evidence({ head }: { readonly head: RolloutHead }) {
  return (
    <>
      <Scores head={head} />
      <Judgements head={head} />
      <Errors head={head} />
      {head.answer !== null && (
        <>
          <h2>Answer in the row</h2>
          <ShownBlock text={head.answer.text} />
        </>
      )}
      <HeadFacts head={head} />
    </>
  );
}

function Scores({ head: { scores, scoring_errors } }: { readonly head: RolloutHead }) {
  return (
    <>
      <h2>Scores</h2>
      {scores.length === 0 && <p className="soft">None yet.</p>}
      {scores.length > 0 && (
        <table className="scores">
          <thead>
            <tr>
              <th scope="col">function</th>
              <th scope="col" className="numeric">
                score
              </th>
              <th scope="col" className="numeric">
                weight
              </th>
            </tr>
          </thead>
          <tbody>
            {scores.map(({ name, score, weight }) => (
              <tr key={name}>
                <th scope="row">
                  <Shown text={name} most={200} />
                </th>
                <td className="numeric">{scoreText(score)}</td>
                <td className="numeric">{weight === 0 ? "metric" : String(weight)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {scoring_errors.map(({ function: name, error }) => (
        <div key={name} className="note bad">
          <Shown text={name} most={200} /> returned no score:
          <ShownBlock text={error} />
        </div>
      ))}
    </>
  );
}

function Errors({ head: { error, cleanup_errors } }: { readonly head: RolloutHead }) {
  const errors = [...(error === null ? [] : [error]), ...cleanup_errors];
  if (errors.length === 0) return null;
  return (
    <>
      <h2>Errors</h2>
      {inOrder(errors).map(({ place, item: one }) => (
        <div key={place} className="note bad">
          <p>
            <b>
              <Shown text={one.error} most={100} />
            </b>
          </p>
          <ShownBlock text={one.message} />
          {one.error_chain_str !== one.message && (
            <details>
              <summary>All causes</summary>
              <ShownBlock text={one.error_chain_str} />
            </details>
          )}
        </div>
      ))}
    </>
  );
}

function HeadFacts({ head }: { readonly head: RolloutHead }) {
  const { usage, cost, forked_from, rescored_from, superseded_by, tools } = head;
  return (
    <>
      <h2>Facts</h2>
      <Facts>
        <Fact name="Stopped by">{head.stop_condition === null ? NOTHING : words(stopText(head.stop_condition))}</Fact>
        <Fact name="Took">{head.duration_ms === null ? NOTHING : durationText(head.duration_ms / 1000)}</Fact>
        <Fact name="Started">{timeText(head.started_at)}</Fact>
        <Fact name="Tokens">
          {countText(usage.prompt_tokens)} in, {countText(usage.completion_tokens)} out
        </Fact>
        <Fact name="Policy, judges">
          {dollarsText(cost.policy_micros)}, {dollarsText(cost.judge_micros)}
        </Fact>
        <Fact name="Charged">{dollarsText(cost.charged_micros)}</Fact>
        <Fact name="Task">
          <code>
            <Shown text={head.task_key ?? NOTHING} />
          </code>
        </Fact>
        <Fact name="Group, slot, attempt">
          {head.group}, {head.slot}, {head.attempt}
        </Fact>
        {tools.length > 0 && (
          <Fact name="Tools">
            <Shown text={tools.join(", ")} most={1000} />
          </Fact>
        )}
        {forked_from !== null && (
          <Fact name="Forked from">
            <RolloutLink id={forked_from.rollout_id} turn={forked_from.turn} />
          </Fact>
        )}
        {rescored_from !== null && (
          <Fact name="Rescores">
            <RolloutLink id={rescored_from} />
          </Fact>
        )}
        {superseded_by !== null && (
          <Fact name="Superseded by">
            <RolloutLink id={superseded_by} />
          </Fact>
        )}
      </Facts>
    </>
  );
}

function RolloutLink({ id, turn }: { readonly id: string; readonly turn?: number }) {
  return (
    <Link
      to="/rollouts/$id"
      params={{ id } as never}
      search={(turn === undefined ? {} : { turn: String(turn + 1) }) as never}
    >
      {id}
      {turn !== undefined && `, turn ${turn + 1}`}
    </Link>
  );
}

/** The outcome in one line. */
export function OutcomeLine({
  head: { status, outcome, reason, reward, advantage, is_truncated, stop_condition },
}: {
  readonly head: RolloutHead;
}) {
  return (
    <p className="row">
      <Badge state={outcome ?? status} /> {reason !== null && <Shown text={words(reason)} most={200} />}
      <span>
        reward <b>{scoreText(reward)}</b>
      </span>
      <span className="soft">advantage {scoreText(advantage)}</span>
      {is_truncated && <Badge state={rolloutCutText(stop_condition)} tone="warn" />}
    </p>
  );
}
