/** The most frequent error of a tool's failed calls in a step, and links to the rollouts in which they failed. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { ErrorNote } from "../../components/error-note.tsx";
import { countText } from "../../components/format.ts";
import { Shown } from "../../components/shown.tsx";
import { mostFrequent } from "./failed-calls.ts";
import { readEach, readFailedCalls } from "./read-failed-calls.ts";
import { FailingLink } from "./rollout-links.tsx";
import { FAILING_TURNS, type ToolCalls } from "./step-facts.ts";

/** In how many rollouts the texts of the failed calls are read, and the characters that are quoted. */
const READ = 12;
const QUOTED = 160;

interface ToolErrorsProps {
  /** The id of the run. */
  readonly run: string;
  /** The names of the tools, as they are counted. */
  readonly tools: string;
  readonly calls: ToolCalls | undefined;
}

export function ToolErrors({ run, tools, calls }: ToolErrorsProps) {
  const failing = calls?.failing ?? [];
  const read = failing.slice(0, READ).flatMap(({ rollout, turns }) => turns.map((turn) => ({ rollout, turn })));
  const { data, error, refetch } = useQuery({
    queryKey: ["failed-calls", ...read.map(({ rollout, turn }) => `${rollout} ${turn}`)],
    queryFn: async ({ signal }) => {
      return (await readEach(read, ({ rollout, turn }) => readFailedCalls(rollout, turn, signal))).flat();
    },
    enabled: read.length > 0,
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (failing.length === 0) return null;
  const isCut = failing.some(({ turns }) => turns.length === FAILING_TURNS);
  const most = data === undefined ? null : mostFrequent(data);
  return (
    <>
      {" "}
      Rollouts with failed calls: <FailingLink run={run} rollouts={failing.map(({ rollout }) => rollout)} />.
      {error !== null && <ErrorNote error={error} onRetry={() => refetch()} />}
      {most !== null && (
        <p className="soft">
          Most often {most.tool !== tools && <Shown text={`${most.tool} failed `} most={QUOTED} />}with{" "}
          <q>
            <Shown text={most.text ?? ""} most={QUOTED} />
          </q>{" "}
          (
          <Link to="/rollouts/$id" params={{ id: most.rollout }} search={{ turn: String(most.turn + 1) } as never}>
            an example
          </Link>
          {failing.length > READ && `; read in the first ${countText(READ)} rollouts`}
          {isCut && `; of each rollout the first ${countText(FAILING_TURNS)} turns with failed calls are read`}).
        </p>
      )}
    </>
  );
}
