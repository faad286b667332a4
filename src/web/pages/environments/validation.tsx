/** What happened when simple policies played a version before it was published. */
import type { PublishedVersion } from "../../../contract/published-environment.ts";
import { Badge } from "../../components/badge.tsx";
import { Fact, Facts } from "../../components/facts.tsx";
import { countText, NOTHING, numberText, percentText, scoreText } from "../../components/format.ts";
import { JsonView } from "../../components/json-view.tsx";
import { Scroll } from "../../components/scroll.tsx";
import { Shown } from "../../components/shown.tsx";
import { readValidation, type ShownValidation, toneOf } from "./validation-record.ts";

export function Validation({ validation }: Pick<PublishedVersion, "validation">) {
  const read = readValidation(validation);
  return (
    <>
      {read === null ? <p>This page cannot show the record of this validation as a table.</p> : <Read {...read} />}
      <details>
        <summary>The whole record</summary>
        <JsonView value={validation} what="record of the validation" />
      </details>
    </>
  );
}

function Read(validation: ShownValidation) {
  const { examples, checks, rewards, equalRows, deterministic, callsPerTurn, failed } = validation;
  return (
    <>
      <p>
        The platform played {countText(examples)} rows with simple policies, before the version was published. No model
        and no judge was called.
      </p>
      <Facts>
        <Fact name="Result">
          <Result {...validation} />
        </Fact>
        <Fact name="Rewards">
          {rewards === null ? "none" : `${scoreText(rewards.least)} to ${scoreText(rewards.most)}`}
        </Fact>
        <Fact name="Rows whose rewards are all equal">{percentText(equalRows)}</Fact>
        <Fact name="The same in a second instance">
          {deterministic === null ? "unknown" : deterministic ? "yes" : "no"}
        </Fact>
        <Fact name="Calls of its code per turn">{numberText(callsPerTurn)}</Fact>
      </Facts>
      <h2>Checks</h2>
      <Scroll label="Checks">
        <table>
          <thead>
            <tr>
              <th scope="col">Check</th>
              <th scope="col">Result</th>
              <th scope="col">Message</th>
            </tr>
          </thead>
          <tbody>
            {checks.map(({ name, status, message }) => (
              <tr key={name}>
                <th scope="row">
                  <Shown text={name} />
                </th>
                <td>
                  <Badge state={status} tone={toneOf(status)} />
                </td>
                <td>
                  <Shown text={message} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
      <Policies {...validation} />
      {validation.judgements.length > 0 && <Judgements {...validation} />}
      {failed.length > 0 && <h2>Reward functions that gave no score</h2>}
      <ul>
        {failed.map(({ name, count, first }) => (
          <li key={name}>
            <Shown text={name} />, {countText(count)} times, first: <Shown text={first} />
          </li>
        ))}
      </ul>
    </>
  );
}

function Result({ ok, unchecked }: ShownValidation) {
  if (!ok) return <Badge state="failed" tone="bad" />;
  return unchecked.length === 0 ? (
    <Badge state="passed" tone="good" />
  ) : (
    <>
      <Badge state="not fully checked" tone="warn" /> <Shown text={unchecked.join(", ")} />
    </>
  );
}

function Judgements({ judgements }: ShownValidation) {
  return (
    <>
      <h2>Reward of each judgement</h2>
      <Scroll label="Reward of each judgement">
        <table>
          <thead>
            <tr>
              <th scope="col">Judge</th>
              <th scope="col">Judgement</th>
              <th scope="col" className="numeric">
                Reward
              </th>
            </tr>
          </thead>
          <tbody>
            {judgements.map(({ judge, judgement, reward }, at) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: the record never changes, and two questions may be alike
              <tr key={at}>
                <th scope="row">
                  <Shown text={judge} />
                </th>
                <td>
                  <Shown text={judgement} />
                </td>
                <td className="numeric">{scoreText(reward)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </>
  );
}

function Policies({ policies }: ShownValidation) {
  return (
    <>
      <h2>Mean reward of each policy</h2>
      <Scroll label="Mean reward of each policy">
        <table>
          <thead>
            <tr>
              <th scope="col">Policy</th>
              <th scope="col" className="numeric">
                Mean reward
              </th>
              <th scope="col" className="numeric">
                Plays
              </th>
            </tr>
          </thead>
          <tbody>
            {policies.map(({ name, mean, n }) => (
              <tr key={name}>
                <th scope="row">
                  <Shown text={name} />
                </th>
                <td className="numeric">{n === 0 ? NOTHING : scoreText(mean)}</td>
                <td className="numeric">{countText(n)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </>
  );
}
