/** Turns of a running rollout, a page at a time: the cost of a page is bounded by the page. */
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { packTurns, type Turn } from "../../../src/contract/trajectory.ts";
import { newRollout, type Rollout, trajectoryOf } from "../../../src/core/rollout/rollout.ts";
import { RolloutObject } from "../../../src/index.ts";
import type { RolloutSpec } from "../../../src/kernel/messages/wire.ts";
import { FactsTable } from "../../../src/kernel/rollout/facts.ts";
import { RolloutStore } from "../../../src/kernel/rollout/store.ts";
import { restOf, turnSlice } from "../../../src/kernel/rollout/turn-slice.ts";
import { countingRows, type RowsRun } from "../counting-rows.ts";
import { inside } from "../platform.ts";

const TURNS = 400;
const ALL = { after: null, before: null, limit: TURNS, bytes: Number.POSITIVE_INFINITY };

function turn(index: number): Turn {
  return {
    index,
    prompt: { keep: 2 * index, append: [{ role: "user", content: `and ${index}?` }] },
    completion: { role: "assistant", content: index === 200 ? "long ".repeat(500_000) : `${index} it is` },
    ...{ finish_reason: "stop", usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }, tokens: null },
    ...{ is_truncated: false, calls: 1, latency_ms: 5, response_id: null, model: "m", policy_version: null },
    ...{ answered_at: 1000 + index, state_after: { kept: "same", last: index } },
  };
}

/** A rollout that has this many turns and continues, in an object whose statements are counted. */
function longRollout<T>(use: (rollout: Rollout, table: FactsTable, rows: RowsRun) => T): Promise<T> {
  const id = crypto.randomUUID();
  return inside(env.ROLLOUT.getByName(id), RolloutObject, (_, { storage }) => {
    const task = { id, task_key: "k", example_id: 1, task: {}, prompt: [], answer: "4", info: {} };
    const turns = Array.from({ length: TURNS }, (_, index) => turn(index));
    const rollout: Rollout = { ...newRollout(task, 1000), initial_state: { kept: "same" }, phase: "reply", turns };
    const store = new RolloutStore(new FactsTable(storage.sql), id);
    store.begin({ rollout_id: id } as RolloutSpec);
    store.save({ ...rollout, state: { kept: "same", last: TURNS - 1 } });
    const { sql, rows } = countingRows(storage.sql);
    return use(rollout, new FactsTable(sql), rows);
  });
}

test("a page of a running rollout reads only the rows of its own turns, from either end, however many turns there are", async () => {
  await longRollout((rollout, table, rows) => {
    const stored = packTurns(rollout.initial_state, rollout.turns);
    const pages = [
      [{ ...ALL, limit: 20 }, 0, 20, true],
      [{ ...ALL, after: 250, limit: 20 }, 251, 271, true],
      [{ ...ALL, before: 100_000, limit: 20 }, 380, 400, true],
      [{ ...ALL, after: 390, limit: 20 }, 391, 400, false],
      [{ ...ALL, after: 198, limit: 20, bytes: 1000 }, 199, 200, true],
      [{ ...ALL, after: 199, limit: 20, bytes: 1000 }, 200, 201, true],
      [{ ...ALL, limit: 0 }, 0, 0, true],
    ] as const;
    rows();
    for (const [ask, from, to, more] of pages) {
      const slice = turnSlice(table, rollout.id, ask);
      expect(slice).toMatchObject({ total: TURNS, started_at: 1000, from, to, more });
      expect(slice?.turns).toEqual(stored.slice(from, to));
      expect(slice?.bytes).toEqual(stored.slice(from, to).map((one) => JSON.stringify(one).length));
      expect(rows().read).toBeLessThan(60);
    }
  });
});

test("all turns and other fields are the same as in the trajectory", async () => {
  await longRollout((rollout, table) => {
    const { turns, ...rest } = trajectoryOf(rollout);
    expect(turnSlice(table, rollout.id, ALL)?.turns).toEqual(turns);
    expect(rest).toMatchObject(restOf(rollout));
  });
});

test("a rollout that was never begun has no turns, and reading them writes nothing", async () => {
  await inside(env.ROLLOUT.getByName(crypto.randomUUID()), RolloutObject, (object, { storage }) => {
    expect([object.turns("nobody", ALL), object.rest("nobody")]).toEqual([null, null]);
    expect(storage.sql.exec("select name from sqlite_master where name = 'facts'").toArray()).toEqual([]);
  });
});
