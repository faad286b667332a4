/** What a turn writes: a row costs money whatever its size, so a turn and a short head share one. */
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import type { JsonObject } from "../../../src/contract/json.ts";
import type { Turn } from "../../../src/contract/trajectory.ts";
import { newRollout, type Rollout } from "../../../src/core/rollout/rollout.ts";
import { RolloutObject } from "../../../src/index.ts";
import type { RolloutSpec } from "../../../src/kernel/messages/wire.ts";
import { FactsTable } from "../../../src/kernel/rollout/facts.ts";
import { RolloutStore } from "../../../src/kernel/rollout/store.ts";
import { turnSlice } from "../../../src/kernel/rollout/turn-slice.ts";
import { countingRows, type RowsRun } from "../counting-rows.ts";
import { inside } from "../platform.ts";

interface Played {
  readonly id: string;
  readonly store: RolloutStore;
  readonly rows: RowsRun;
  /** A store that reads what is on disk, as after a kill. */
  readonly again: () => RolloutStore;
  readonly table: FactsTable;
}

function played<T>(use: (played: Played) => T): Promise<T> {
  const id = crypto.randomUUID();
  return inside(env.ROLLOUT.getByName(id), RolloutObject, (_, { storage }) => {
    const { sql, rows } = countingRows(storage.sql);
    const table = new FactsTable(sql);
    const store = new RolloutStore(table, id);
    store.begin({ rollout_id: id } as RolloutSpec);
    return use({ id, store, rows, again: () => new RolloutStore(new FactsTable(storage.sql), id), table });
  });
}

function turn(index: number, content = `${index} it is`): Turn {
  return {
    index,
    prompt: { keep: 2 * index, append: [{ role: "user", content: `and ${index}?` }] },
    completion: { role: "assistant", content },
    ...{ finish_reason: "stop", usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }, tokens: null },
    ...{ is_truncated: false, calls: 1, latency_ms: 5, response_id: null, model: "m", policy_version: null },
    ...{ answered_at: 1000 + index, state_after: { last: index } },
  };
}

const [FIRST, SECOND, THIRD] = [turn(0), turn(1), turn(2)];

/** The rollout whose next call is about to be sent, after these turns. */
function calling(turns: readonly Turn[], state: JsonObject = { last: turns.length - 1 }): Rollout {
  const task = { id: "r", task_key: "k", example_id: 1, task: {}, prompt: [], answer: "4", info: {} };
  return { ...newRollout(task, 1000), initial_state: {}, phase: "sample", turns, state };
}

test("an answered turn, the state after it and the intent of the next call are one row", async () => {
  await played(({ store, rows, again }) => {
    store.save(calling([]));
    const turns: Turn[] = [];
    for (let index = 0; index < 10; index += 1) {
      turns.push(turn(index, "two\nlines"));
      rows();
      store.save(calling([...turns]));
      expect(rows().written).toBe(1);
      expect(again().load()).toEqual(store.load());
      expect(again().writes()).toBe(index + 2);
    }
  });
});

test("a long state has a row of its own, so that not every turn keeps a copy", async () => {
  await played(({ store, rows, again }) => {
    store.save(calling([]));
    rows();
    store.save(calling([FIRST], { notes: "long ".repeat(1000) }));
    expect(rows().written).toBe(2);
    store.save(calling([FIRST, SECOND], { notes: "short" }));
    expect(rows().written).toBe(1);
    expect(again().load()?.state).toEqual({ notes: "short" });
    store.save(calling([FIRST, SECOND, THIRD], { notes: "long again ".repeat(1000) }));
    expect(again().load()).toEqual(store.load());
  });
});

test("a head that is written after a turn, without another one, is the newest", async () => {
  await played(({ store, again }) => {
    store.save(calling([]));
    store.save(calling([FIRST]));
    store.save({ ...calling([FIRST]), state: { tried: "twice" } });
    expect(again().load()?.state).toEqual({ tried: "twice" });
    store.saveOutcome({ ...calling([FIRST, SECOND]), phase: "reply" });
    store.keepAnswer();
    // The process is killed before the reply to the second turn.
    expect(again().load()).toMatchObject({ phase: "reply", intent: null, state: { tried: "twice" } });
    expect(again().load()?.turns).toEqual([FIRST, SECOND]);
    store.save(calling([FIRST, SECOND]));
    store.save(calling([FIRST, SECOND, THIRD]));
    store.saveOutcome({ ...calling([FIRST, SECOND, THIRD, turn(3)]), phase: "reply" });
    store.keepAnswer();
    // The newest head stands behind the turn before the last.
    expect(again().load()).toMatchObject({ phase: "reply", intent: null, state: { last: 2 } });
  });
});

test("an answer that is written with its head already is kept as it is", async () => {
  await played(({ store, rows, again }) => {
    store.save(calling([]));
    store.saveOutcome({ ...calling([FIRST]), phase: "reply" });
    store.save(calling([FIRST]));
    rows();
    store.keepAnswer();
    expect(rows().written).toBe(0);
    expect(again().load()).toMatchObject({ phase: "sample", turns: [FIRST], state: { last: 0 } });
  });
});

test("a rollout that begins with one turn of another has its first head in a row of its own, which readers of single turns need", async () => {
  await played(({ id, store, table, again }) => {
    store.save(calling([FIRST]));
    store.save(calling([FIRST, SECOND]));
    expect(again().load()).toEqual(store.load());
    const slice = turnSlice(table, id, { after: null, before: null, limit: 10, bytes: Number.POSITIVE_INFINITY });
    expect(slice).toMatchObject({ total: 2, started_at: 1000 });
    expect(slice?.turns.map(({ completion }) => completion)).toEqual([FIRST, SECOND].map((of) => of.completion));
  });
});
