/** A run's rollouts as lists: the SQL of a filter and a sort gives what its words mean, page by page. */
import { expect, test } from "vitest";
import { parseSort } from "../../../../src/contract/filter.ts";
import { LIMITS } from "../../../../src/contract/limits.ts";
import { rolloutId } from "../../../../src/core/ids.ts";
import type {
  ListCursor,
  ListedRollout,
  Place,
  RolloutSlice,
  RowTerm,
} from "../../../../src/kernel/messages/list-wire.ts";
import { sliceSizeOf } from "../../../../src/kernel/run/lists/slice-size.ts";
import { Life } from "../../life.ts";
import { type MadeUp, madeUpRun, rowTermsOf } from "./made-up-run.ts";

const ROLLOUTS = 120;

type Filter = string | readonly RowTerm[];
const termsOf = (filter: Filter) => (typeof filter === "string" ? rowTermsOf(filter) : filter);

/** All matches, read in pages of an odd length. */
function listed({ look }: Pick<MadeUp, "look">, filter: Filter, sortText = "dispatched", limit = 7): ListedRollout[] {
  const sort = parseSort(sortText);
  if (sort === null) throw new Error(`no sort: ${sortText}`);
  const rows: ListedRollout[] = [];
  for (let after: ListCursor | null = null; ; ) {
    const slice: RolloutSlice = look("rollouts", { terms: termsOf(filter), sort, after, limit });
    expect(slice.rows.length).toBeLessThanOrEqual(limit);
    rows.push(...slice.rows);
    if (slice.next === null) return rows;
    after = slice.next.after;
  }
}

type Passes = (row: ListedRollout) => boolean;
const tokens = ({ prompt_tokens, completion_tokens }: ListedRollout) =>
  prompt_tokens === null ? null : prompt_tokens + (completion_tokens ?? 0);
const over = (value: number | null, least: number) => value !== null && value > least;

const FILTERS: readonly [filter: string, passes: Passes][] = [
  ["reward<0.5", ({ reward }) => reward !== null && reward < 0.5],
  ["-reward<0.5", ({ reward }) => reward === null || reward >= 0.5],
  ["reward:null", ({ reward }) => reward === null],
  ["reward=0|null turns>2", ({ reward, turns }) => (reward === 0 || reward === null) && over(turns, 2)],
  ["turns!=3", ({ turns }) => turns !== 3],
  ["tokens>1000", (row) => over(tokens(row), 1000)],
  ["latency>2s", ({ duration }) => over(duration, 2)],
  ["outcome:failed", ({ outcome }) => outcome === "failed"],
  ["outcome:failed|cancelled", ({ outcome }) => outcome === "failed" || outcome === "cancelled"],
  ["error:provider", ({ reason }) => reason === "provider"],
  ["not error:null", ({ reason }) => reason !== null],
  ["stop:max_turns_reached", ({ stop_condition }) => stop_condition === "max_turns_reached"],
  ["stop:null", ({ stop_condition }) => stop_condition === null],
  ["status:running", ({ status }) => status === "running"],
  ["-status:done", ({ status }) => status !== "done"],
  ["task:0000000", ({ group }) => group < 16],
  ["task:%", () => false],
  ["id:ro_11", ({ id }) => id.startsWith("ro_11")],
  ["id:ro_7|ro_2", ({ id }) => id.startsWith("ro_7") || id.startsWith("ro_2")],
  ["-id:ro_1", ({ id }) => !id.startsWith("ro_1")],
  ["id:%|RO_1", () => false],
  ["example:12", ({ example_id }) => example_id === 12],
  ["group:3 slot:0|2", ({ group, slot }) => group === 3 && slot % 2 === 0],
  ["truncated:true", ({ is_truncated }) => is_truncated],
  ["judged:true", () => false],
  ["cancelling:false superseded:false", () => true],
  ["exact=1", ({ scores }) => scores[0]?.score === 1],
  ['-"exact">0', ({ scores }) => scores.length === 0 || scores[0]?.score === 0],
  ["step:null", () => true],
  ['"no WAY %_"', ({ outcome }) => outcome === "failed"],
  ['"is 7 TWICE"', ({ group, status }) => group === 7 && status === "done"],
  ['"no way" error:timeout', ({ reason }) => reason === "timeout"],
];

test("each filter matches the rollouts for which it is true, and they are counted", () =>
  madeUpRun(ROLLOUTS, (run) => {
    const all = listed(run, "", "dispatched", 500);
    for (const [filter, passes] of FILTERS) {
      const found = listed(run, filter).map(({ id }) => id);
      expect([filter, found]).toEqual([filter, all.filter(passes).map(({ id }) => id)]);
      const counted = run.look("matches", { terms: termsOf(filter), slice: 0 });
      expect([filter, counted]).toEqual([filter, { n: found.length, slices: 1 }]);
    }
  }));

/** The places of every fifth rollout, and one that no rollout has. */
const PLACES = Array.from({ length: ROLLOUTS / 5 }, (_, at): Place => [Math.floor((at * 5) / 4), (at * 5) % 4, 0]);
const AMONG = { kind: "among", places: [...PLACES, [0, 0, 1]] } as const;
const isAmong: Passes = ({ group, slot, attempt }) =>
  PLACES.some((place) => `${place}` === `${[group, slot, attempt]}`);

test("rollouts that are selected by their places are listed in any order, counted, and left out if that is negated", () =>
  madeUpRun(ROLLOUTS, (run) => {
    for (const sort of ["dispatched", "-reward", "group", "exact"]) {
      const all = listed(run, "turns<9", sort, 500);
      for (const negated of [false, true]) {
        const terms = [...rowTermsOf("turns<9"), { ...AMONG, negated }];
        const passing = all.filter((row) => isAmong(row) !== negated).map(({ id }) => id);
        expect(passing.length).toBeGreaterThan(0);
        expect(listed(run, terms, sort).map(({ id }) => id)).toEqual(passing);
        expect(run.look("matches", { terms, slice: 0 }).n).toBe(passing.length);
      }
    }
    const none = { kind: "among", places: [] } as const;
    expect(listed(run, [{ ...none, negated: false }])).toEqual([]);
    expect(listed(run, [{ ...none, negated: true }])).toHaveLength(ROLLOUTS);
  }));

test("a list of rollouts that are selected by their places reads only these", () =>
  madeUpRun(4000, (run) => {
    run.rows();
    expect(listed(run, [{ ...AMONG, negated: false }], "-reward")).toHaveLength(PLACES.length);
    expect(run.rows().read).toBeLessThan(4000);
  }));

test("as many places as a run may have reviews make slices shorter, and cost more", () => {
  const most = Array.from({ length: LIMITS.reviewsPerRun }, (_, at): Place => [at, 0, 0]);
  const sizes = { texts: 0, scores: 0 };
  const [few, many] = [[], most].map((places) => {
    return sliceSizeOf([{ kind: "among", negated: true, places }], "field", sizes);
  });
  expect(many?.rows).toBeLessThan(few?.rows ?? 0);
  expect(many?.rows).toBeGreaterThan(10_000);
});

test("slices of any size give the same lists and counts, and a count reads no more rows than its slice has", () =>
  madeUpRun(ROLLOUTS, (run) => {
    const rows = 13;
    const look: MadeUp["look"] = (question, ask) => {
      run.rows();
      const answer = run.look(question, { ...Object(ask), rows });
      if (question === "matches") expect(run.rows().read).toBeLessThan(rows * 4);
      return answer;
    };
    for (const [filter] of FILTERS) {
      const whole = listed(run, filter).map(({ id }) => id);
      expect([filter, listed({ look }, filter).map(({ id }) => id)]).toEqual([filter, whole]);
      const counts = Array.from({ length: 10 }, (_, slice) => look("matches", { terms: termsOf(filter), slice }));
      expect(counts.map(({ slices }) => slices)).toEqual(Array(10).fill(10));
      expect(counts.reduce((sum, { n }) => sum + n, 0)).toBe(whole.length);
    }
    for (const sort of ["-exact", "reward", "-duration"]) {
      expect(listed({ look: (question, ask) => run.look(question, { ...Object(ask), rows }) }, "", sort)).toEqual(
        listed(run, "", sort),
      );
    }
  }));

test("the longer the rows and the more terms a filter has, the fewer rows a slice reads", () =>
  madeUpRun(ROLLOUTS, (run) => {
    const texts = (many: number) => termsOf(Array.from({ length: many }, (_, at) => `-"zq${at}"`).join(" "));
    const short = run.look("rowSizes", null);
    const plain = sliceSizeOf([], "field", short);
    expect(plain).toEqual({ rows: 20_000, steps: 500_000 });
    const twenty = sliceSizeOf(texts(20), "field", short);
    expect([twenty.rows < 1000, twenty.steps]).toEqual([true, 500_000]);
    expect(sliceSizeOf(texts(1), "field", short).rows).toBeGreaterThan(twenty.rows * 5);
    run.sql.exec("update rollouts set scoring_errors = ? where seq % 2 = 0", JSON.stringify("x".repeat(10_000)));
    const long = run.look("rowSizes", null);
    expect(long.texts).toBeGreaterThan(short.texts + 4900);
    expect(sliceSizeOf(texts(3), "field", long).rows).toBeLessThan(sliceSizeOf(texts(3), "field", short).rows / 4);
    const large = { texts: 0, scores: 64_000 };
    const scores = sliceSizeOf(termsOf("a=1 b=1"), "score", large);
    expect(scores.rows).toBe(250);
    expect(scores.steps).toBeGreaterThan(500_000);
  }));

test("a rollout shows its task text once it is known, and a comparison of runs reads many at once", () =>
  madeUpRun(ROLLOUTS, (run) => {
    const all = listed(run, "");
    for (const { group, status, task_text } of all) {
      expect(task_text).toBe(status === "done" ? `What is ${group} twice?` : null);
    }
    const seqs = all.map(({ at }) => at.seq);
    const known = all.flatMap(({ at, task_text }) => (task_text === null ? [] : [[at.seq, task_text] as const]));
    expect(run.look("taskTexts", [...seqs, ROLLOUTS + 1])).toEqual(new Map(known));
    run.rows();
    run.look("taskTexts", [5, 80]);
    expect(run.rows().read).toBeLessThan(10);
  }));

test("an id filter reads the rows of its group, and stores no values", () =>
  madeUpRun(2000, (run) => {
    const mac = (text: string) => text.replaceAll(/[^0-9a-z]/g, "").padEnd(8, "0");
    const idOf = (group: number, slot: number) =>
      rolloutId(`run_${"0".repeat(26)}${"1".repeat(8)}`, { group, slot, attempt: 0 }, mac);
    for (let seq = 1; seq <= 2000; seq += 1) {
      run.sql.exec("update rollouts set id = ? where seq = ?", idOf(Math.floor((seq - 1) / 4), (seq - 1) % 4), seq);
    }
    run.rows();
    const id = idOf(400, 2);
    expect(listed(run, `id:${id}`).map((row) => row.id)).toEqual([id]);
    const read = run.rows();
    expect([read.read < 100, read.written]).toEqual([true, 0]);
    const group = id.slice(0, id.indexOf("_", 31) + 1);
    expect(listed(run, `id:${group}`).map((row) => row.group)).toEqual([400, 400, 400, 400]);
    expect(listed(run, `id:${group} -id:${id}`).length).toBe(3);
    expect(listed(run, `id:${id}|${idOf(3, 0)}`).map((row) => row.group)).toEqual([3, 400]);
  }));

const SORTS: readonly [sort: string, value: (row: ListedRollout) => number | null][] = [
  ["reward", ({ reward }) => reward],
  ["turns", ({ turns }) => turns],
  ["calls", ({ calls }) => calls],
  ["tokens", tokens],
  ["duration", ({ duration }) => duration],
  ["exact", ({ scores }) => scores[0]?.score ?? null],
];

test("sorted by a number, page by page, rollouts without it come last in both directions, and none is repeated", () =>
  madeUpRun(ROLLOUTS, (run) => {
    for (const filter of ["", "reward>=0.2", "exact=1|2", "error:provider"]) {
      const all = listed(run, filter, "dispatched", 500);
      for (const [sort, value] of SORTS) {
        const [having, lacking] = [all.filter((row) => value(row) !== null), all.filter((row) => value(row) === null)];
        for (const direction of [1, -1]) {
          having.sort((a, b) => ((value(a) ?? 0) - (value(b) ?? 0) || a.at.seq - b.at.seq) * direction);
          const text = direction === 1 ? sort : `-${sort}`;
          const found = listed(run, filter, text, 11).map(({ id }) => id);
          expect([filter, text, found]).toEqual([filter, text, [...having, ...lacking].map(({ id }) => id)]);
        }
      }
    }
  }));

test("rollouts can be sorted by group or by the order of their ends, in both directions", () =>
  madeUpRun(ROLLOUTS, (run) => {
    const ids = (sort: string) => listed(run, "", sort).map(({ id }) => id);
    expect(ids("-group")).toEqual(ids("group").reverse());
    expect(ids("group")).toEqual(ids("dispatched"));
    expect(ids("ended").slice(0, 3)).toEqual(["ro_2", "ro_3", "ro_4"]);
    expect(ids("-started")).toEqual(ids("started").reverse());
  }));

const kept = ({ sql }: MadeUp) =>
  sql
    .exec<{ name: string }>("select name from listed_values order by name")
    .toArray()
    .map(({ name }) => name);

test("a list stores only the values of its sort, and only when it is first needed", () =>
  madeUpRun(ROLLOUTS, (run) => {
    const tables = () => run.sql.exec("select name from sqlite_master where name like 'list%'").toArray();
    listed(run, 'reward<0.5 turns>2 -outcome:failed exact=1 "no way"');
    expect(tables()).toEqual([{ name: "listed_prompts" }]);
    listed(run, "reward<0.5", "-reward");
    expect(kept(run)).toEqual(["reward"]);
    listed(run, "error:provider");
    expect(kept(run)).toEqual(["error", "reward"]);
  }));

test("each call stores values of 20,000 ends, and once they are stored a list writes nothing", () =>
  madeUpRun(100_000, (run) => {
    const sort = parseSort("-reward");
    if (sort === null) throw new Error("no sort");
    const ask = () => run.look("rollouts", { terms: [], sort, after: null, limit: 50 });
    for (let call = 0; call < 3; call += 1) {
      expect(ask()).toEqual({ rows: [], next: { after: null } });
      const { read, written } = run.rows();
      expect([read < 50_000, written > 1000, written < 45_000]).toEqual([true, true, true]);
    }
    // The fourth slice has the last of 80,000 ends.
    expect(ask().rows).toHaveLength(50);
    run.rows();
    expect(ask().rows.map(({ reward }) => reward)).toEqual(Array.from({ length: 50 }, () => 1));
    const { read, written } = run.rows();
    expect([read < 25_000, written]).toEqual([true, 0]);
  }));

test("a rollout that has reported and waits for its scores is sorted by its numbers", () =>
  madeUpRun(ROLLOUTS, (run) => {
    const [first] = listed(run, "", "-turns");
    expect(first?.turns).toBe(9);
    const answers = (seq: number, turns: number) =>
      run.sql.exec("update rollouts set status = 'scoring', turns = ? where seq = ?", turns, seq);
    answers(1, 100);
    answers(11, 90);
    expect(
      listed(run, "", "-turns")
        .map(({ id }) => id)
        .slice(0, 2),
    ).toEqual(["ro_0", "ro_10"]);
  }));

test("a page of tasks with the same prefix reads no more rows than any other, also in the order of dispatch", () =>
  madeUpRun(100_000, ({ look, rows }) => {
    const page = (filter: string, sortText: string, after: ListCursor | null) => {
      const sort = parseSort(sortText);
      if (sort === null) throw new Error(`no sort: ${sortText}`);
      const slice = look("rollouts", { terms: termsOf(filter), sort, after, limit: 50 });
      return { ids: slice.rows.map(({ id }) => id), next: slice.next?.after ?? null, read: rows().read };
    };
    const prepare = (filter: string) => {
      for (let at = 0; at < 5; at += 1) page(filter, "dispatched", null);
    };
    prepare("task:0");
    prepare("error:provider");
    const first = page("task:0", "dispatched", null);
    expect(first.ids).toEqual(Array.from({ length: 50 }, (_, at) => `ro_${at}`));
    const second = page("task:0", "dispatched", first.next);
    expect(second.ids[0]).toBe("ro_50");
    for (const { read } of [first, second, page("error:provider", "dispatched", null)]) {
      expect(read).toBeLessThan(30_000);
    }
    // Few matches are found wherever they are.
    expect(page("task:00006000", "dispatched", null).ids).toEqual([4, 5, 6, 7].map((at) => `ro_9830${at}`));
  }));

test("rollouts without the number are searched in bounded ranges, however few there are", () =>
  madeUpRun(20_040, ({ sql, look }) => {
    sql.exec("update rollouts set reward = case when seq = 20010 then null else 1 end");
    const sort = { by: { kind: "field", field: "reward" }, descending: true } as const;
    const ask = (seq: number) => look("rollouts", { terms: [], sort, after: { value: null, seq }, limit: 5 });
    expect(ask(0)).toEqual({ rows: [], next: { after: { value: null, seq: 20_000 } } });
    const { rows, next } = ask(20_000);
    expect([rows.map(({ at }) => at.seq), next]).toEqual([[20_010], null]);
  }));

test("the values of 20 names are stored, and a list by any other name is correct too", () =>
  madeUpRun(ROLLOUTS, (run) => {
    const names = Array.from({ length: 23 }, (_, at) => `score_${at}`);
    const scores = JSON.stringify(names.map((name, at) => ({ name, score: at, weight: 1 })));
    run.sql.exec("update rollouts set scores = ? where scores is not null", scores);
    for (const name of [...names, "score_0"]) {
      const rows = listed(run, "", `-${name}`, 50);
      expect([rows.length, rows[0]?.at.value]).toEqual([ROLLOUTS, names.indexOf(name)]);
    }
    listed(run, "error:provider stop:done", "-tokens");
    expect(kept(run)).toHaveLength(20);
    expect(kept(run)).toEqual(expect.arrayContaining(["error", "score score_0", "score score_22"]));
    const values = run.sql.exec<{ name: string }>("select distinct name from list_values order by name").toArray();
    expect(values.map(({ name }) => name)).toEqual(kept(run));
  }));

test("a text search ignores the case of A to Z, and respects the case of other letters", () =>
  madeUpRun(ROLLOUTS, (run) => {
    const error = JSON.stringify({ error: "ModelError", message: "Großer Ärger: Ошибка", error_chain_repr: "" });
    run.sql.exec("update rollouts set error = ? where seq = 3", error);
    const found = ["GROß", "Ärger", "ärger", "Ошибка", "ошибка", "ошибк"].map(
      (text) => listed(run, `"${text}"`).length,
    );
    expect(found).toEqual([1, 1, 0, 1, 0, 0]);
  }));

const MOST_WRITES = 40;

test("a run killed at any write of its lists lists the same afterwards, and stores no values without a registered name", async () => {
  const names = Array.from({ length: 22 }, (_, at) => `score_${at}`);
  const scores = JSON.stringify(names.map((name, at) => ({ name, score: at, weight: 1 })));
  const SORTED = ["-score_20", "-turns", "-score_21"];
  let killed = 0;
  for (let over = true; over && killed < MOST_WRITES; killed += over ? 1 : 0) {
    over = await madeUpRun(ROLLOUTS, (run) => {
      run.sql.exec("update rollouts set scores = ? where scores is not null", scores);
      // As many as there is room for: later ones replace two of them.
      for (const name of names.slice(0, 20)) listed(run, "", name, 500);
      const life = new Life(killed);
      const dying = { look: run.lookIn(life) };
      const died = fails(() => SORTED.map((sort) => listed(dying, "", sort, 500)));
      expect([killed, died]).toEqual([killed, life.over]);
      const unknown = "select distinct name from list_values where name not in (select name from listed_values)";
      expect([killed, run.sql.exec(unknown).toArray()]).toEqual([killed, []]);
      for (const name of ["score_0", "score_1", "score_20", "score_21"]) {
        const having = listed(run, "", `-${name}`, 500).filter(({ at }) => at.value === names.indexOf(name));
        expect([killed, name, having.length]).toEqual([killed, name, ROLLOUTS / 2]);
      }
      const turns = listed(run, "", "-turns", 500).flatMap(({ turns }) => turns ?? []);
      expect([killed, turns]).toEqual([killed, turns.toSorted((a, b) => b - a)]);
      return died;
    });
  }
  expect(killed).toBeGreaterThan(10);
  expect(killed).toBeLessThan(MOST_WRITES);
});

function fails(act: () => unknown): boolean {
  try {
    act();
  } catch {
    return true;
  }
  return false;
}
