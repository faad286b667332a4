/** `rollcall run list`. */
import type { RunStatus, RunView } from "../../contract/run.ts";
import { RUN_STATUSES } from "../../contract/run.ts";
import { readCommandLine } from "../command-line.ts";
import { RUN_LIST } from "../commands.ts";
import { EXIT, type ExitCode } from "../exit.ts";
import { gather, onPlatform } from "../on-platform.ts";
import { doneOf } from "../terminal/display.ts";
import { countText, estimateText, timeText } from "../terminal/format.ts";
import { listText } from "../terminal/table.ts";

const USUAL_LIMIT = 20;
const LARGEST_PAGE = 100;
const HEADER = ["run", "status", "environment", "model", "done", "reward", "created", "name"];

export function runListCommand(argv: readonly string[]): Promise<ExitCode> {
  const line = readCommandLine(RUN_LIST, argv);
  line.none();
  const limit = line.count("limit", 1) ?? USUAL_LIMIT;
  const query = {
    status: statusOf(line.text("status")),
    environment: line.text("environment"),
    metadata: line.pairs("metadata"),
    // One more than is shown tells whether there are more.
    limit: Math.min(limit + 1, LARGEST_PAGE),
  };
  const asked = query.status ?? query.environment ?? Object.keys(query.metadata)[0];
  const none = asked === undefined ? "No runs. Start one with: rollcall eval" : "No such runs.";
  return onPlatform(line, async ({ client, signal, term: { room }, answer }) => {
    const page = await gather(client.runs(query, { signal }), limit);
    answer(page, () => {
      const text = listText(page.data, { header: HEADER, rowOf, none, room });
      return page.has_more ? `${text}\nThere are more: --limit N` : text;
    });
    return EXIT.good;
  });
}

function statusOf(text: string | undefined): RunStatus | undefined {
  return RUN_STATUSES.find((status) => status === text);
}

function rowOf(run: RunView): string[] {
  return [
    run.id,
    run.status,
    `${run.environment.id}@${run.environment.version}`,
    run.model,
    `${countText(doneOf(run))}/${countText(run.counts.planned)}`,
    estimateText(run.report.reward),
    timeText(run.created_at),
    run.name ?? "",
  ];
}
