/** The newest trainings: the line of each one's rewards, its last reward, and a link to its curves. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { RunView } from "../../../contract/run.ts";
import { api } from "../../client.ts";
import { Badge } from "../../components/badge.tsx";
import { messageOf } from "../../components/error-note.tsx";
import { countText, numberText, scoreText } from "../../components/format.ts";
import { Scroll } from "../../components/scroll.tsx";
import { Shown } from "../../components/shown.tsx";
import { Sparkline } from "../../components/sparkline.tsx";
import { Ago } from "../../components/time.tsx";
import { hasEnded } from "../run/progress.ts";
import { type LastRewards, lastRewards } from "./last-rewards.ts";

const SHOWN = 5;
/** Steps of the line: the last ones. */
const STEPS = 60;
const AGAIN_MS = 15_000;

export function Trainings({ runs }: { readonly runs: readonly RunView[] }) {
  if (runs.length === 0) return null;
  return (
    <section>
      <h2>Trainings</h2>
      <Scroll label="Trainings">
        <table className="trends">
          <thead>
            <tr>
              <th scope="col">Training</th>
              <th scope="col" className="numeric">
                Last reward
              </th>
              <th scope="col">Mean reward by step</th>
            </tr>
          </thead>
          <tbody>
            {runs.slice(0, SHOWN).map((run) => (
              <TrainingRow key={run.id} run={run} />
            ))}
          </tbody>
        </table>
      </Scroll>
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

function TrainingRow({ run }: { readonly run: RunView }) {
  const { id, name, environment, model, status, created_at, max_reward } = run;
  const { data, error } = useQuery({
    queryKey: ["runs", "home", "rewards", id, hasEnded(run)],
    queryFn: ({ signal }) => readLastRewards(id, signal),
    ...(hasEnded(run) ? { staleTime: Number.POSITIVE_INFINITY } : { refetchInterval: AGAIN_MS }),
  });
  const last = data?.rewards.at(-1);
  return (
    <tr>
      <th scope="row">
        <Link to="/runs/$id" params={{ id }} search={{}}>
          <Shown text={name ?? id} most={60} />
        </Link>{" "}
        {status !== "completed" && <Badge state={status} />}
        <span className="second soft">
          <Shown text={environment.id} most={60} />, <Shown text={model} most={60} />, <Ago at={created_at} />
        </span>
      </th>
      <td className="numeric">
        {last !== undefined && (
          <>
            {scoreText(last.reward)}
            <span className="second soft">
              step {countText(last.step)}
              {max_reward !== undefined && `, best possible ${numberText(max_reward)}`}
            </span>
          </>
        )}
      </td>
      <td>
        {error !== null && <Shown text={`could not be read: ${messageOf(error)}`} most={200} />}
        {data !== undefined && data.rewards.length === 0 && <span className="soft">no step has a reward</span>}
        {data !== undefined && data.rewards.length > 0 && <Sparkline values={data.smoothed} text={lineText(data)} />}
      </td>
    </tr>
  );
}

function lineText({ smoothed, rewards }: LastRewards): string {
  const [first, last] = [scoreText(smoothed[0]), scoreText(smoothed.at(-1))];
  if (rewards.length === 1) return `one step, ${last}`;
  return `the last ${countText(rewards.length)} steps, smoothed: from ${first} to ${last}`;
}

async function readLastRewards(id: string, signal: AbortSignal): Promise<LastRewards> {
  const { training } = await api.runs.get(id, { signal });
  const after = (training?.steps_trained ?? 0) - STEPS;
  const { data } = await api.runs.metrics(
    id,
    { limit: 2 * STEPS, ...(after > 0 && { after_step: after }) },
    { signal },
  );
  return lastRewards(data);
}
