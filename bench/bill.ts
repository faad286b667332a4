/**
 * Computes what 1,000 rollouts of ten turns, 20 s a turn, cost in a deployment: the tables of docs/cost.md. Times come
 * from a simulation of how rollouts share objects (sharing.ts); this module counts what each event writes and requests.
 * Seeded, so every machine gets the same numbers.
 */
import { LIMITS } from "../src/contract/limits.ts";
import { seededRandom } from "../src/contract/random.ts";
import { rowDueAt, rowEveryMs } from "../src/kernel/run/alarm.ts";
import { QUEUE_S, type Shared, shareObjects } from "./sharing.ts";

const ROLLOUTS = 1000;
const TURNS = 10;
const MEAN_S = 20;
const CALL_TIMEOUT_S = 600;
const SIGMA = 0.5;
/** Figures are means over this many seeds. */
const SEEDS = 5;

/** Rollouts, or scoring groups, per message; and rollouts per segment. */
const PER_MESSAGE = 25;
const PER_SEGMENT = 100;
const PROGRESS_EVERY_S = 1;
const LEASE_EVERY_S = 300;
const QUIET_S = 15;
const DAY_S = 86_400;
const MONTH_S = 30 * DAY_S;

/** Assumed. */
const AWAKE_S_PER_REQUEST = 0.1;
export const KEPT_KB_PER_ROLLOUT = { small: 40, large: 80 } as const;
export const RUN_KB_PER_ROLLOUT = 3;
export const SEGMENT_KB_PER_ROLLOUT = { small: 30, large: 60 } as const;
const CPU_MS_PER_ROLLOUT = 10;
const ROWS_READ_PER_ROLLOUT = 100;

/** Only failures and notices are logged (test/kernel/kit/quiet-rollouts.test.ts). */
const LOG_LINES_PER_ROLLOUT = 0;

const GB_PER_OBJECT = 0.128;

type Random = () => number;

/** The seconds of a turn, 20 on average. */
const LENGTHS: Readonly<Record<string, (random: Random) => number>> = {
  equal: () => MEAN_S,
  [`lognormal σ ${SIGMA}`]: (random) => MEAN_S * Math.exp(SIGMA * normal(random) - SIGMA ** 2 / 2),
  exponential: (random) => -MEAN_S * Math.log(1 - random()),
};
const IN_FLIGHT = [6, 128] as const;
/** Rollouts that share an object: as many as it has connections (the only choice if replies come whole), and more. */
const WIDTHS = [LIMITS.parallelFetches, 12, 24, 48] as const;

/**
 * The size of trajectories. Up to 32 KiB they are sent with the report, and what needs no other rollout is scored where
 * it was played. Larger ones are objects of R2, and a consumer scores them.
 */
const SIZES = ["over 32 KiB", "up to 32 KiB"] as const;
type Size = (typeof SIZES)[number];

/** By Box and Muller. */
function normal(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

/** The counts of a run's own work, besides its rollouts. */
interface Chores {
  readonly groupsMessages: number;
  readonly scoresMessages: number;
  readonly segments: number;
  /** Writes of the run's row in D1. */
  readonly rowWrites: number;
  readonly progressEvents: number;
  readonly leaseAsks: number;
  readonly runAlarms: number;
  /** The notifications that a client gets when it follows the run. */
  readonly flushes: number;
  /** 1 if trajectories are large, else 0. */
  readonly large: number;
}

interface Case extends Shared, Chores {}

interface Setup {
  readonly size: Size;
  readonly maxConcurrent: number;
  readonly perShard?: number;
}

function played(
  { size, maxConcurrent, perShard = LIMITS.rolloutsPerShard }: Setup,
  lengths: string,
  seed: number,
): Case {
  const random = seededRandom("cost", lengths, maxConcurrent, seed);
  const turnS = () => LENGTHS[lengths]?.(random) ?? MEAN_S;
  const work = { rollouts: ROLLOUTS, turns: TURNS, maxConcurrent, perShard, callTimeoutS: CALL_TIMEOUT_S, turnS };
  const shared = shareObjects(work);
  return { ...shared, ...choresOf(shared, size === "over 32 KiB") };
}

function choresOf({ ends, dispatches, reconciliations, runS }: Shared, large: boolean): Chores {
  const taken = ends.map(({ at }) => at);
  const scored = large ? taken.map((at) => at + QUEUE_S) : [];
  const rows = rowsWritten([...taken, ...scored]);
  const flushes = [...taken, ...scored, ...reconciliations, ...rows];
  const messages = (counts: readonly number[]) => counts.reduce((sum, n) => sum + Math.ceil(n / PER_MESSAGE), 0);
  return {
    groupsMessages: messages(dispatches),
    scoresMessages: large ? messages(ends.map(({ count }) => count)) : 0,
    segments: ROLLOUTS / PER_SEGMENT,
    rowWrites: rows.length,
    progressEvents: spaced([...taken, ...scored], PROGRESS_EVERY_S).length,
    leaseAsks: 2 + Math.floor(runS / LEASE_EVERY_S),
    runAlarms: reconciliations.length + rows.length + 1,
    flushes: flushes.length,
    large: large ? 1 : 0,
  };
}

/** The times of an action that follows every moment, but happens at most once in `every` seconds. */
function spaced(moments: readonly number[], every: number): number[] {
  const done: number[] = [];
  for (const at of moments.toSorted((a, b) => a - b)) {
    const last = done.at(-1) ?? Number.NEGATIVE_INFINITY;
    if (at > last) done.push(Math.max(at, last + every));
  }
  return done;
}

/** The times at which the run's row is written: each write has all changes until then. */
function rowsWritten(changes: readonly number[]): number[] {
  const written: number[] = [];
  for (const at of changes.toSorted((a, b) => a - b)) {
    const last = written.at(-1) ?? Number.NEGATIVE_INFINITY;
    if (at <= last) continue;
    const row = { rowStaleAt: at * 1000, rowTriedAt: last * 1000, rowEveryMs: rowEveryMs(at * 1000), rowFailures: 0 };
    written.push((rowDueAt(row) ?? 0) / 1000);
  }
  return written;
}

interface Line {
  readonly what: string;
  /** Dollars for `per` units. */
  readonly price: number;
  readonly per: Unit;
  readonly count: (of: Case) => number;
}

const UNITS = { million: 1e6, "GB-month": 1 } as const;
type Unit = keyof typeof UNITS;

function requestsToPlayers({ starts, asks, alarms, objects }: Case): number {
  return starts + asks + alarms + objects;
}

function consumed({ groupsMessages, scoresMessages, segments }: Case): number {
  return groupsMessages + scoresMessages + segments;
}

function requestsToRun({ groupsMessages, reports, scoresMessages, segments, runAlarms }: Case): number {
  return 1 + groupsMessages + reports + 2 * scoresMessages + 2 * segments + runAlarms;
}

/**
 * Per rollout: a spec, the first head and the acknowledgement; a row per turn, with the head after it; one more head for
 * each handover.
 */
function rowsOfRollouts({ handovers, objects }: Case): number {
  return ROLLOUTS * (3 + TURNS) + handovers + 2 * objects;
}

/**
 * Per rollout: 3 rows at dispatch, 2 at the report, and its event; then 2 if it is scored later, or 2 for its
 * trajectory, which is written and deleted.
 */
function rowsOfRun(of: Case): number {
  const heads = of.dispatches.length + of.reports + of.scoresMessages + of.rowWrites + 2 * of.leaseAsks;
  return 45 + 8 * ROLLOUTS + heads + 2 * of.progressEvents + 2 * of.rolloutsAsked + 4 * of.segments;
}

/** The alarm is set again after each alarm, and moved forward for each row in D1. */
function alarmsSet({ alarms, runAlarms, rowWrites, leaseAsks }: Case): number {
  return alarms + runAlarms + rowWrites + leaseAsks;
}

function gbSeconds(seconds: number): number {
  return seconds * GB_PER_OBJECT;
}

function sized(kb: { readonly small: number; readonly large: number }, { large }: Case): number {
  return large === 1 ? kb.large : kb.small;
}

function gbMonths(kb: number, seconds: number): number {
  return ((ROLLOUTS * kb) / 1e6) * (seconds / MONTH_S);
}

/** Dollars of the paid plan, November 2026, for a million, or for a GB-month; docs/cost.md has their sources. */
export const PRICES = {
  request: 0.15,
  gbSecond: 12.5,
  rowWritten: 1,
  rowRead: 0.001,
  objectGbMonth: 0.2,
  queueOperation: 0.4,
  r2ClassA: 4.5,
  r2ClassB: 0.36,
  r2GbMonth: 0.015,
  invocation: 0.3,
  cpuMs: 0.02,
  logLine: 0.6,
} as const;

const BILL: readonly Line[] = [
  {
    what: "requests to objects that play rollouts",
    price: PRICES.request,
    per: "million",
    count: requestsToPlayers,
  },
  { what: "requests to the run's object", price: PRICES.request, per: "million", count: requestsToRun },
  {
    what: "requests to the endpoint's object",
    price: PRICES.request,
    per: "million",
    count: ({ leaseAsks }) => leaseAsks,
  },
  {
    what: "GB-s of objects that play rollouts",
    price: PRICES.gbSecond,
    per: "million",
    count: ({ objectS, objects }) => gbSeconds(objectS + AWAKE_S_PER_REQUEST * objects),
  },
  {
    what: "GB-s of the run's object",
    price: PRICES.gbSecond,
    per: "million",
    count: (of) => gbSeconds(AWAKE_S_PER_REQUEST * requestsToRun(of)),
  },
  {
    what: "GB-s of the endpoint's object",
    price: PRICES.gbSecond,
    per: "million",
    count: ({ leaseAsks }) => gbSeconds(AWAKE_S_PER_REQUEST * leaseAsks),
  },
  { what: "rows written by rollouts", price: PRICES.rowWritten, per: "million", count: rowsOfRollouts },
  { what: "rows written by the run", price: PRICES.rowWritten, per: "million", count: rowsOfRun },
  {
    what: "rows written by the endpoint",
    price: PRICES.rowWritten,
    per: "million",
    count: ({ leaseAsks }) => leaseAsks,
  },
  { what: "alarms set (a row each)", price: PRICES.rowWritten, per: "million", count: alarmsSet },
  { what: "rows read", price: PRICES.rowRead, per: "million", count: () => ROWS_READ_PER_ROLLOUT * ROLLOUTS },
  {
    what: "storage of objects",
    price: PRICES.objectGbMonth,
    per: "GB-month",
    count: (of) => gbMonths(sized(KEPT_KB_PER_ROLLOUT, of), of.runS + DAY_S) + gbMonths(RUN_KB_PER_ROLLOUT, MONTH_S),
  },
  {
    what: "rows written in D1",
    price: PRICES.rowWritten,
    per: "million",
    count: ({ rowWrites }) => 10 + 2 * rowWrites,
  },
  {
    what: "queue operations",
    price: PRICES.queueOperation,
    per: "million",
    count: (of) => 3 * consumed(of),
  },
  {
    what: "R2 writes (class A)",
    price: PRICES.r2ClassA,
    per: "million",
    count: ({ segments, large }) => 1 + large * ROLLOUTS + segments,
  },
  {
    what: "R2 reads (class B)",
    price: PRICES.r2ClassB,
    per: "million",
    count: ({ groupsMessages, large }) => 2 * large * ROLLOUTS + groupsMessages,
  },
  {
    what: "storage of R2, a month",
    price: PRICES.r2GbMonth,
    per: "GB-month",
    count: (of) => gbMonths(sized(SEGMENT_KB_PER_ROLLOUT, of), MONTH_S),
  },
  {
    what: "invocations of consumers",
    price: PRICES.invocation,
    per: "million",
    count: consumed,
  },
  { what: "CPU ms of consumers", price: PRICES.cpuMs, per: "million", count: () => CPU_MS_PER_ROLLOUT * ROLLOUTS },
  {
    what: "lines of our own log",
    price: PRICES.logLine,
    per: "million",
    count: () => LOG_LINES_PER_ROLLOUT * ROLLOUTS,
  },
];

/** An event for each invocation, of objects and of consumers. wrangler.toml turns them off. */
const INVOCATION_LOGS: readonly Line[] = [
  {
    what: "invocation logs, if they were on",
    price: PRICES.logLine,
    per: "million",
    count: (of) => requestsToPlayers(of) + requestsToRun(of) + of.leaseAsks + consumed(of),
  },
];

/** If a client follows the run, the run's object is billed for the whole run instead of its own seconds. */
const FOLLOWED: readonly Line[] = [
  {
    what: "followed: GB-s more of the run's object",
    price: PRICES.gbSecond,
    per: "million",
    count: (of) => gbSeconds(of.runS - AWAKE_S_PER_REQUEST * requestsToRun(of)),
  },
  {
    what: "followed: reads of its events",
    price: PRICES.request,
    per: "million",
    count: ({ flushes, runS }) => flushes + runS / QUIET_S,
  },
];

interface Cases {
  readonly size: Size;
  readonly inFlight: number;
  /** By the lengths of turns, one case per seed. */
  readonly of: readonly (readonly Case[])[];
}

/** The total cost of each case, the results of the simulation, and the bill, as Markdown. */
export function costTables(): string {
  const cases = SIZES.flatMap((size) =>
    IN_FLIGHT.map((inFlight): Cases => {
      const setup = { size, maxConcurrent: inFlight };
      return { size, inFlight, of: Object.keys(LENGTHS).map((lengths) => seeds(setup, lengths)) };
    }),
  );
  const bills = cases.map(({ size, inFlight, of }) => [
    `### Trajectories ${size}, \`max_concurrent\` ${inFlight}`,
    bill(of),
  ]);
  // The size of trajectories changes no times.
  const timed = cases.filter(({ size }) => size === SIZES[0]);
  return [totals(cases), widths(), times(timed), ...bills.flat()].join("\n\n");
}

function seeds(setup: Setup, lengths: string): Case[] {
  return Array.from({ length: SEEDS }, (_, seed) => played(setup, lengths, seed));
}

/** The parts of the bill, by words in the names of their lines. */
const PARTS: Readonly<Record<string, RegExp>> = {
  duration: /^GB-s/,
  requests: /^(requests|queue|invocations|CPU)/,
  "rows and alarms": /^(rows|alarms)/,
  "R2 and storage": /^(R2|storage)/,
  "log lines": /^lines/,
};

/** What sharing an object saves: each part for large trajectories, and both sums. */
function widths(): string {
  const head = ["rollouts an object", "objects", "their time, s", "a rollout, s", ...Object.keys(PARTS), ...SIZES];
  const rows = WIDTHS.map((perShard) => {
    const [large = [], small = []] = SIZES.map((size) =>
      seeds({ size, maxConcurrent: Math.max(...IN_FLIGHT), perShard }, `lognormal σ ${SIGMA}`),
    );
    const parts = Object.values(PARTS).map((of) => BILL.filter(({ what }) => of.test(what)));
    return [
      String(perShard),
      whole(mean(large, ({ objects }) => objects)),
      whole(mean(large, ({ objectS }) => objectS)),
      mean(large, ({ rolloutS }) => rolloutS / ROLLOUTS).toFixed(1),
      ...parts.map((lines) => dollarsOf(lines, large).toFixed(4)),
      ...[large, small].map((cases) => dollarsOf(BILL, cases).toFixed(4)),
    ];
  });
  return table([head, ...rows]);
}

function totals(cases: readonly Cases[]): string {
  const head = ["trajectories", "rollouts at once", ...Object.keys(LENGTHS).map((lengths) => `${lengths}, $`)];
  const line = ({ size, inFlight, of }: Cases, what: string, lines: readonly Line[]) => [
    size,
    `${inFlight}${what}`,
    ...of.map((seeds) => dollarsOf(lines, seeds).toFixed(3)),
  ];
  const rows = cases.flatMap((one) => [line(one, "", BILL), line(one, ", followed", [...BILL, ...FOLLOWED])]);
  return table([head, ...rows]);
}

function times(cases: readonly Cases[]): string {
  const head = [
    "rollouts at once",
    "turns",
    "the run, h",
    "a rollout, s",
    "objects",
    "their time, s",
    "alarms",
    "rollouts put off",
  ];
  const rows = cases.flatMap(({ inFlight, of }) =>
    of.map((seeds, index) => [
      String(inFlight),
      Object.keys(LENGTHS)[index] ?? "",
      mean(seeds, ({ runS }) => runS / 3600).toFixed(2),
      mean(seeds, ({ rolloutS }) => rolloutS / ROLLOUTS).toFixed(1),
      whole(mean(seeds, ({ objects }) => objects)),
      whole(mean(seeds, ({ objectS }) => objectS)),
      whole(mean(seeds, ({ alarms }) => alarms)),
      whole(mean(seeds, ({ handovers }) => handovers)),
    ]),
  );
  return table([head, ...rows]);
}

function bill(of: readonly (readonly Case[])[]): string {
  const head = ["what", "price, $", ...Object.keys(LENGTHS).flatMap((lengths) => [lengths, "$"])];
  const rows = (lines: readonly Line[]) =>
    lines.map((line) => [
      line.what,
      `${line.price} / ${line.per}`,
      ...of.flatMap((seeds) => [shown(countOf(line, seeds), line.per), dollarsOf([line], seeds).toFixed(4)]),
    ]);
  const sum = (what: string, lines: readonly Line[]) => [
    `**${what}**`,
    "",
    ...of.flatMap((seeds) => ["", `**${dollarsOf(lines, seeds).toFixed(4)}**`]),
  ];
  const followed = [...rows(FOLLOWED), sum("all, with a client that follows it", [...BILL, ...FOLLOWED])];
  return table([head, ...rows(BILL), sum("all", BILL), ...followed, ...rows(INVOCATION_LOGS)]);
}

/** The count that is shown and multiplied. */
function countOf({ count, per }: Line, seeds: readonly Case[]): number {
  const counted = mean(seeds, count);
  return per === "million" ? Math.round(counted) : counted;
}

/** Each line rounded as it is shown, so that the table adds up. */
function dollarsOf(lines: readonly Line[], seeds: readonly Case[]): number {
  const each = lines.map((line) => Number(((countOf(line, seeds) * line.price) / UNITS[line.per]).toFixed(4)));
  return each.reduce((sum, dollars) => sum + dollars, 0);
}

function mean(seeds: readonly Case[], of: (one: Case) => number): number {
  return seeds.reduce((sum, one) => sum + of(one), 0) / seeds.length;
}

function whole(count: number): string {
  return Math.round(count).toLocaleString("en");
}

function shown(count: number, per: Unit): string {
  return per === "million" ? whole(count) : count.toFixed(4);
}

function table([head = [], ...rows]: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}
