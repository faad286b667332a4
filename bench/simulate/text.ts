/** The outcome of cases as text for a person, and as the table of docs/operations.md. */
import { type Ceiling, daysOfD1, type Outcome } from "./outcome.ts";
import { KINDS } from "./traffic.ts";

const SHOWN_CEILINGS = 5;

/** Three digits; whole above 100. */
function shown(value: number): string {
  if (value >= 100) return Math.round(value).toLocaleString("en");
  return String(Number(value.toPrecision(value >= 1 ? 3 : 2)));
}

export function outcomeText(name: string, outcome: Outcome): string {
  const { requests, d1, queues, r2, storage, ceilings } = outcome;
  const causes = Object.entries(d1.causes).map(([cause, rate]) => `${cause} ${shown(rate)}`);
  const lines = [
    `(${name}) ${outcome.name}: ${shown(outcome.rollouts)} rollouts and ${shown(outcome.turns)} turns a second`,
    ...KINDS.map((kind) => {
      const { sum, hottest } = requests[kind];
      return `requests to ${kind} objects: ${shown(sum)}/s, the hottest ${shown(hottest)}/s`;
    }),
    ...(outcome.fleet > 0 ? [`requests to the fleet object of a project: ${shown(outcome.fleet)}/s`] : []),
    `D1: ${shown(d1.reads)} reads/s, ${shown(d1.writes)} writes/s (${causes.join("; ")})`,
    ...queues
      .filter(({ messages }) => messages > 0)
      .map(({ name: queue, queues: count, messages, consumers, least_consumers, fullest }) => {
        const least = `${shown(least_consumers)} with full batches`;
        const most = `at most ${fullest.most_consumers} worked and ${shown(fullest.most_waiting)} waited in one`;
        return `${queue} (${count}): ${shown(messages)} messages/s, ${shown(consumers)} consumers, ${least}, ${most}`;
      }),
    `R2: ${shown(r2.class_a)} writes/s, ${shown(r2.class_b)} reads/s`,
    `storage a day: D1 ${shown(storage.d1_gb_a_day)} GB (${shown(daysOfD1(outcome))} days until it is full), R2 ` +
      `${shown(storage.r2_gb_a_day)} GB, run objects ${shown(storage.objects_gb_a_day)} GB`,
    `$${outcome.dollars_per_1000_rollouts.toFixed(3)} for 1,000 rollouts`,
    ...ceilings.slice(0, SHOWN_CEILINGS).map((ceiling) => `${percent(ceiling)}  ${ceilingText(ceiling)}`),
  ];
  return lines.join("\n  ");
}

function percent({ used }: Ceiling): string {
  return `${shown(100 * used)} %`.padStart(9);
}

function ceilingText({ what, load, limit, ends_at }: Ceiling): string {
  return `${what}: ${shown(load)} of ${shown(limit)}; full at ${shown(ends_at)}`;
}

/** A row for each case. */
export function summaryTable(cases: Readonly<Record<string, Outcome>>): string {
  const head = [
    "case",
    "rollouts/s",
    "hottest run object, requests/s",
    "D1 reads + writes/s",
    "start messages/s, consumers at work",
    "R2 writes + reads/s",
    "D1 a day",
    "$ per 1,000",
    "first limit, and where it is full",
  ];
  const rows = Object.entries(cases).map(([name, outcome]) => {
    const { requests, d1, queues, r2, storage, ceilings } = outcome;
    const [groups] = queues;
    const [first] = ceilings;
    return [
      `(${name}) ${outcome.name}`,
      shown(outcome.rollouts),
      shown(requests.run.hottest),
      `${shown(d1.reads)} + ${shown(d1.writes)}`,
      `${shown(groups?.messages ?? 0)}, ${shown(groups?.consumers ?? 0)}`,
      `${shown(r2.class_a)} + ${shown(r2.class_b)}`,
      `${shown(1000 * storage.d1_gb_a_day)} MB`,
      outcome.dollars_per_1000_rollouts.toFixed(3),
      first === undefined ? "none" : `${first.what}: ${shown(first.ends_at)} ${outcome.unit}`,
    ];
  });
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}

export interface Measured {
  /** By the number of runs. */
  readonly ask_ms: Readonly<Record<string, number>>;
  /** Of asks that change how many rollouts their run wants. */
  readonly changing_ask_ms: Readonly<Record<string, number>>;
  /** By the number of rows. */
  readonly report_s: Readonly<Record<string, number>>;
}

export function cpuText({ ask_ms, changing_ask_ms, report_s }: Measured): string {
  const timesOf = (ms: Readonly<Record<string, number>>) =>
    Object.entries(ms).map(([runs, each]) => `${runs} runs ${each.toFixed(2)} ms`);
  const reports = Object.entries(report_s).map(([rows, s]) => `${rows} rows ${s.toFixed(2)} s`);
  return [
    "Measured on this machine, for one thread:",
    `  an ask at an endpoint with ${timesOf(ask_ms).join(", ")}; each run may ask once a second`,
    `  the same if the ask changes what its run wants: ${timesOf(changing_ask_ms).join(", ")}`,
    `  the report of a settled run, read from its tables: ${reports.join(", ")}`,
  ].join("\n");
}
