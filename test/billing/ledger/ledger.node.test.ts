/** Compares the ledger with a model of it, over random histories of everything that can happen to money. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { nameOf, type Terms } from "../../../src/billing/ledger/budgets.ts";
import type { EntryLine, StoredEntry } from "../../../src/billing/ledger/entries.ts";
import { Ledger } from "../../../src/billing/ledger/ledger.ts";
import { Differences, recomputeLedger } from "../../../src/billing/ledger/verify.ts";
import type { RunFacts, SettledItem, SettleOrder } from "../../../src/billing/rpc.ts";
import type { GrantedReservation } from "../../../src/kernel/run/schema.ts";
import { TEST_HANGS_MS } from "../../hang-limits.ts";
import { TIMES } from "./histories.ts";
import { Died, MemoryStorage } from "./ledger-in-memory.ts";
import { LedgerModel, type ModelItem, type ModelRun, type ModelTerms } from "./ledger-model.ts";

const START = Date.UTC(2026, 10, 29);
const HOUR = 3_600_000;
const RUNS: readonly ModelRun[] = [
  { id: "run_1", project: "pj_1", payer: "key_1" },
  { id: "run_2", project: "pj_1", payer: "key_2" },
  { id: "run_3", project: "pj_2", payer: "key_1" },
];

/** Events as data: fast-check can shrink them, and a failure shows them. */
const micros = fc.integer({ min: 0, max: 60 });
const happening = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      what: fc.constant("settle" as const),
      run: fc.nat(2),
      stream: fc.constantFrom("ends" as const, "pushes" as const),
      /** Starts before the first new item (a repeat) or after it (a gap). */
      from: fc.constantFrom(-2, -1, 0, 0, 0, 1),
      prices: fc.array(fc.constantFrom(0, 3, 7, 20), { maxLength: 4 }),
      backwards: fc.constantFrom(false, false, false, true),
      reservation: fc.option(micros),
      least: fc.constantFrom(0, 0, 10, 40),
    }),
  },
  { weight: 2, arbitrary: fc.record({ what: fc.constant("reserve" as const), run: fc.nat(2), micros }) },
  {
    weight: 3,
    arbitrary: fc.record({
      what: fc.constant("post" as const),
      kind: fc.constantFrom("top_up" as const, "refund" as const, "dispute" as const, "correction" as const),
      // Few ids, so that many occur twice.
      id: fc.nat(3),
      micros: fc.integer({ min: -80, max: 120 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ what: fc.constant("archive" as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({ what: fc.constant("wait" as const), hours: fc.constantFrom(0.01, 0.3, 30, 400) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      what: fc.constant("agree" as const),
      billing: fc.constantFrom("prepaid" as const, "postpaid" as const, "off" as const),
      credit: fc.option(fc.integer({ min: 0, max: 100 })),
      budgets: fc.uniqueArray(fc.record({ target: fc.nat(4), limit_micros: fc.integer({ min: 0, max: 150 }) }), {
        maxLength: 3,
        selector: ({ target }) => target,
      }),
    }),
  },
);
type Happening = typeof happening extends fc.Arbitrary<infer T> ? T : never;
/** The number of writes after which the object dies during the event, if it does; then the event is repeated. */
const history = fc.array(fc.record({ event: happening, dies: fc.option(fc.nat(12), { freq: 4 }) }), {
  minLength: 1,
  maxLength: 14,
});

class Player {
  readonly model = new LedgerModel();
  ledger: Ledger;
  now = START;
  terms: Terms = { org_id: "org_1", billing: "prepaid", credit_limit_micros: null, budgets: [], read_at: 0 };
  readonly #storage: MemoryStorage;
  readonly #prices = new Map<string, number>();
  readonly #archived: StoredEntry[] = [];

  constructor(storage: MemoryStorage) {
    this.#storage = storage;
    this.ledger = new Ledger(storage);
  }

  play(event: Happening, dies: number | null): void {
    if (dies !== null) this.#tryAndDie(event, dies);
    switch (event.what) {
      case "settle":
        this.#settle(event);
        break;
      case "reserve":
        this.#reserve(event);
        break;
      case "post":
        this.#post(event);
        break;
      case "wait":
        this.now += event.hours * HOUR;
        this.ledger.write(() => this.ledger.reservations.dropEnded(this.now));
        break;
      case "archive":
        this.#archive();
        break;
      default:
        this.#agree(event);
    }
  }

  /** Files of two entries, except the newest two entries. */
  #archive(): void {
    const bounds = { kept: 2, entriesAFile: 2 };
    for (let next = this.ledger.archive.next(bounds); next !== null; next = this.ledger.archive.next(bounds)) {
      const file = next;
      this.ledger.write(() => this.ledger.archive.noteStored(file));
      this.#archived.push(...file.entries);
    }
  }

  /** An interrupted event leaves no trace, and the next instance starts from the disk. */
  #tryAndDie(event: Happening, dies: number): void {
    this.#storage.diesAfter = dies;
    const before = this.#seen();
    try {
      if (event.what === "settle") this.ledger.settle(this.#orderOf(event).order, this.terms, this.now);
      else if (event.what === "post") this.ledger.post(postingOf(event), this.terms, this.now);
      else return;
      // The event had fewer writes, so it is done, but its answer was lost: it is repeated below.
      this.#storage.diesAfter = null;
      this.#compareRepeat(event);
    } catch (thrown) {
      if (!(thrown instanceof Died)) throw thrown;
      this.#storage.diesAfter = null;
      this.ledger = new Ledger(this.#storage);
      expect(this.#seen()).toEqual(before);
    } finally {
      this.#storage.diesAfter = null;
    }
  }

  /** An event whose answer was lost is done in the model too. */
  #compareRepeat(event: Happening): void {
    if (event.what === "settle") {
      const { run, stream, items } = this.#orderOf(event);
      this.model.settle(run, stream, items, event.reservation, this.#modelTerms(), this.now, event.least);
    } else if (event.what === "post") this.#modelPost(event);
  }

  #settle(event: Extract<Happening, { what: "settle" }>): void {
    const { run, stream, items, order } = this.#orderOf(event);
    const expected = this.model.settle(
      run,
      stream,
      items,
      event.reservation,
      this.#modelTerms(),
      this.now,
      event.least,
    );
    const { settled, reservation } = this.ledger.settle(order, this.terms, this.now);
    expect(settled[stream]).toBe(expected.cursor);
    expect(reservation?.micros ?? null).toBe(expected.reservation);
    if (event.reservation !== null && reservation !== null) this.#expectWithin(run, reservation);
  }

  #reserve({ run: index, micros: asked }: Extract<Happening, { what: "reserve" }>): void {
    const run = RUNS[index] ?? RUNS[0];
    if (run === undefined) return;
    const expected = this.model.begin(run, asked, this.#modelTerms(), this.now);
    const grant = this.ledger.reserve({ run: factsOf(run), micros: asked }, this.terms, this.now);
    expect(grant.micros).toBe(expected);
    expect(grant.short === null).toBe(asked === expected);
    this.#expectWithin(run, grant);
  }

  #post(event: Extract<Happening, { what: "post" }>): void {
    const posted = this.#modelPost(event);
    const reply = this.ledger.post(postingOf(event), this.terms, this.now);
    expect(reply.posted).toBe(posted);
    const { kind, source_id } = postingOf(event);
    const isArchived = this.#archived.some((one) => one.kind === kind && one.source_id === source_id);
    expect(reply.entry?.source_id).toBe(isArchived ? undefined : source_id);
    expect(reply.balance_micros).toBe(this.model.balance());
  }

  #modelPost(event: Extract<Happening, { what: "post" }>): boolean {
    const { kind, source_id, against, amount_micros } = postingOf(event);
    return this.model.post(`${kind} ${source_id}`, against, amount_micros, this.now);
  }

  #agree({ billing, credit, budgets }: Extract<Happening, { what: "agree" }>): void {
    const targets = [
      ["organization", "org_1"],
      ["project", "pj_1"],
      ["project", "pj_2"],
      ["key", "key_1"],
      ["key", "key_2"],
    ] as const;
    const made = budgets.flatMap(({ target, limit_micros }, index) => {
      const [target_kind, target_id] = targets[target] ?? targets[0];
      return [{ id: `bud_${index}`, target_kind, target_id, limit_micros }];
    });
    this.terms = { org_id: "org_1", billing, credit_limit_micros: credit, budgets: made, read_at: this.now };
  }

  /** Whenever something is granted, the sum of reservations and spending is within what is available. */
  #expectWithin(run: ModelRun, { micros: granted }: GrantedReservation): void {
    if (granted === 0) return;
    const { floor, budgets } = this.#modelTerms();
    const held = this.ledger.reservations.live(this.now);
    const sum = (rows: typeof held) => rows.reduce((total, row) => total + row.micros, 0);
    expect(sum(held)).toBeLessThanOrEqual(this.ledger.entries.balance() - floor);
    const month = this.ledger.entries.lastMonth()?.month;
    for (const budget of budgets) {
      const { target_kind, target_id, limit_micros } = budget;
      const isOf = (project: string, payer: string) => {
        return target_kind === "organization" || target_id === (target_kind === "project" ? project : payer);
      };
      if (!isOf(run.project, run.payer)) continue;
      const now = new Date(this.now).toISOString().slice(0, 7);
      const spent = month === now ? this.ledger.spending.of(now, nameOf(budget)) : 0;
      const held_here = sum(held.filter((row) => isOf(row.project_id, row.payer)));
      expect(spent + held_here).toBeLessThanOrEqual(limit_micros);
    }
  }

  #modelTerms(): ModelTerms {
    const { billing, credit_limit_micros, budgets } = this.terms;
    const any = billing === "off" || credit_limit_micros === null;
    const postpaid = any ? Number.NEGATIVE_INFINITY : -credit_limit_micros;
    return { floor: billing === "prepaid" ? 0 : postpaid, budgets };
  }

  /** A run's items always have the same price. */
  #orderOf({
    run: index,
    stream,
    from,
    prices,
    backwards,
    reservation,
    least,
  }: Extract<Happening, { what: "settle" }>) {
    const run = RUNS[index] ?? { id: "run_1", project: "pj_1", payer: "key_1" };
    const first = Math.max(1, (this.model.cursors.get(`${run.id}/${stream}`) ?? 0) + 1 + from);
    const items = prices.map((price, at): ModelItem => {
      const n = first + at;
      const source = `${run.id}-${stream}-${n}`;
      const known = this.#prices.get(source) ?? price;
      this.#prices.set(source, known);
      return { n, source: `${stream === "ends" ? "rollout" : "push"} ${source}`, revenue: revenueOf(known) };
    });
    if (backwards) items.reverse();
    const sent = items.map(({ n, source, revenue }): SettledItem => {
      const [kind, source_id] = source.split(" ");
      if (source_id === undefined) throw new Error(source);
      return {
        n,
        kind: kind === "push" ? "push" : "rollout",
        source_id,
        at: this.now,
        lines: revenue,
        use: { turns: 1 },
      };
    });
    const order: SettleOrder = { run: factsOf(run), items: { [stream]: sent }, reservation, least };
    return { run, stream, items, order };
  }

  #seen() {
    return {
      accounts: this.ledger.entries.accounts(),
      reservations: this.ledger.reservations.live(0),
      entries: this.ledger.entries.lastNumber(),
      usage: this.ledger.rows.all("select counts, lines from usage"),
      cursors: this.ledger.rows.all("select * from cursors"),
    };
  }

  /** The object and the model agree, and no money was lost or created. */
  check(): void {
    const accounts = this.ledger.entries.accounts();
    expect(accounts).toEqual(this.model.accounts());
    expect([...accounts.values()].reduce((sum, one) => sum + one, 0)).toBe(0);
    const live = this.ledger.reservations
      .live(this.now)
      .map(({ run_id, asked, micros: held }) => [run_id, asked, held]);
    const modelled = [...this.model.reservations].filter(([, { until }]) => until > this.now);
    expect(live).toEqual(modelled.map(([id, { asked, micros: held }]) => [id, asked, held]).sort());
    const entries = [...this.#archived, ...this.ledger.entries.from(1, Number.MAX_SAFE_INTEGER, 10_000)];
    expect(entries.map(({ kind, source_id }) => `${kind} ${source_id}`)).toEqual(
      this.model.entries.map(({ source }) => source),
    );
    const said = entries.map(({ number, lines }) => {
      const gained: EntryLine[] = JSON.parse(lines);
      return [number, Object.fromEntries(gained.map(({ account, micros: by }) => [account, by]))];
    });
    expect(said).toEqual(this.model.entries.map(({ lines }, index) => [index + 1, lines]));
    const found = new Differences();
    expect(recomputeLedger(this.ledger, found).accounts.get("balance") ?? 0).toBe(this.model.balance());
    expect(found.all).toEqual([]);
    this.#checkUsage();
  }

  #checkUsage(): void {
    const used = this.ledger.rows.all<{ lines: string }>("select lines from usage");
    const sum = used.flatMap(({ lines }) => Object.values<number>(JSON.parse(lines))).reduce((a, b) => a + b, 0);
    const revenue = [...this.model.accounts()].filter(([name]) => name.startsWith("revenue/"));
    expect(sum).toBe(revenue.reduce((total, [, one]) => total + one, 0));
  }
}

function revenueOf(price: number): Readonly<Record<string, number>> {
  if (price === 0) return {};
  return price > 5 ? { rollout: 5, turns: price - 5 } : { rollout: price };
}

function factsOf({ id, project, payer }: ModelRun): RunFacts {
  const facts = { environment: "gsm8k", model: "m", kind: "eval", price_version: "v1" } as const;
  return { scope: { orgId: "org_1", projectId: project }, run_id: id, payer, ...facts };
}

function postingOf({ kind, id, micros: amount_micros }: Extract<Happening, { what: "post" }>) {
  const against = { top_up: "paid_in/admin", refund: "refunds", dispute: "disputes", correction: "corrections" }[kind];
  const of = { orgId: "org_1", source_id: `${kind}_${id}`, period: "", project_id: null };
  return { ...of, kind, amount_micros, against, note: null };
}

test(
  "the ledger and a model of it agree over random histories, and no money is lost or created",
  () => {
    const storage = new MemoryStorage();
    new Ledger(storage).write(() => undefined);
    fc.assert(
      fc.property(history, (events) => {
        storage.undone(() => {
          const player = new Player(storage);
          for (const { event, dies } of events) player.play(event, dies);
          player.check();
        });
      }),
      { numRuns: 1000 * TIMES },
    );
  },
  TIMES * TEST_HANGS_MS,
);

test("usage after the clock went back is counted in the hour of its entry", () => {
  const storage = new MemoryStorage();
  const ledger = new Ledger(storage);
  const [model] = RUNS;
  if (model === undefined) throw new Error("no run");
  const run = factsOf(model);
  for (const [n, now] of [
    [1, START],
    [2, START - 5 * HOUR],
  ] as const) {
    const end: SettledItem = {
      ...{ n, kind: "rollout", source_id: `ro_${n}`, at: now },
      ...{ lines: { rollout: 5 }, use: { rollouts: 1 } },
    };
    ledger.settle({ run, items: { ends: [end] }, reservation: null }, null, now);
  }
  const used = ledger.rows.all<{ hour: number; lines: string }>("select hour, lines from usage");
  expect(used.map(({ hour, lines }) => [hour, JSON.parse(lines)])).toEqual([[START, { rollout: 10 }]]);
  expect(ledger.entries.from(1, 2, 2).map(({ at }) => at)).toEqual([START, START]);
});
