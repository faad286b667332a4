/**
 * Edits to counts, comparisons and waits at a bound: in billing, accounts, endpoints, fleets, triggers and webhooks.
 */
import { type Edit, editsOf } from "./edit.ts";

export const BOUNDS_EDITS: readonly Edit[] = [
  ...editsOf(
    "src/core/costs/run-costs.ts",
    ["core/costs/run-costs"],
    [["Math.max(fresh, cached)", "Math.min(fresh, cached)"]],
  ),
  ...editsOf(
    "src/billing/charge.ts",
    ["billing/charge"],
    [
      ["one.effective_from >= last", "one.effective_from > last"],
      ["effective_from * 1000 <= now", "effective_from * 1000 < now"],
    ],
  ),
  ...editsOf(
    "src/core/training/advantage.ts",
    ["core/training/advantage"],
    [["isSameScore(Math.min(...rewards)", "isSameScore(Math.max(...rewards)"]],
  ),
  ...editsOf(
    "src/core/statistics/paired.ts",
    ["core/statistics/paired"],
    [
      ["(effect / mean) ** 2) - count", "(effect / mean) ** 2) + count"],
      ["ci95[0] > 0 || ci95", "ci95[0] > 0 && ci95"],
    ],
  ),
  ...editsOf(
    "src/billing/ledger/archive.ts",
    ["billing/ledger/archive"],
    [["+ 1 >= kept + entriesAFile", "+ 1 > kept + entriesAFile"]],
  ),
  ...editsOf(
    "src/billing/ledger/budgets.ts",
    ["billing/ledger/budgets.node"],
    [
      ["spent * 100 >= percent", "spent * 100 > percent"],
      ["and delivered_at is not null", "and delivered_at is null"],
    ],
  ),
  ...editsOf(
    "src/billing/ledger/reservations.ts",
    ["billing/ledger/reservations.node"],
    [["told_at + NOTIFY_AGAIN_MS <= means.now", "told_at + NOTIFY_AGAIN_MS > means.now"]],
  ),
  ...editsOf(
    "src/billing/ledger/usage.ts",
    ["billing/ledger/usage.node"],
    [
      ["before.version + 1;", "before.version + 0;"],
      ["before.copied < before.version", "before.copied <= before.version"],
    ],
  ),
  ...editsOf(
    "src/billing/ledger/verify.ts",
    ["billing/ledger/archive"],
    [["else move(sums, archived, -1);", "else move(sums, archived, 1);"]],
  ),
  ...editsOf(
    "src/kernel/endpoint/health.ts",
    ["kernel/endpoint/health.node"],
    [["(outcomes.ok_at ?? 0) > outage.since", "(outcomes.ok_at ?? 0) >= outage.since"]],
  ),
  ...editsOf(
    "src/fleets/choose.ts",
    ["fleets/rules.node"],
    [["inFlight(replica.id) / replica", "inFlight(replica.id) * replica"]],
  ),
  ...editsOf(
    "src/fleets/served.ts",
    ["fleets/rules.node"],
    [
      ["loads_start === true && replica", "loads_start !== true && replica"],
      ["order?.loads_start === true ? null", "order?.loads_start !== true ? null"],
    ],
  ),
  ...editsOf(
    "src/fleets/version-intervals.ts",
    ["fleets/version-intervals.node"],
    [
      ["from < number && end", "from <= number && end"],
      ["end < (to ?? Number", "end <= (to ?? Number"],
      ["interval.confirmed >= interval.to", "interval.confirmed > interval.to"],
      ["current ? weights.version", "current ? weights.generation"],
    ],
  ),
  ...editsOf("src/fleets/waiting.ts", ["fleets/waiting.node"], [["(now - from) / 2", "(now - from) * 2"]]),
  ...editsOf(
    "src/fleets/driving.ts",
    ["fleets/waiting.node"],
    [["FIRST_WAIT_MS * 2 ** phase.misses", "FIRST_WAIT_MS * 1 ** phase.misses"]],
  ),
  ...editsOf("src/billing/charging.ts", ["billing/charging.node"], [["at: carried ? now :", "at: !carried ? now :"]]),
  ...editsOf(
    "src/kernel/run/accounting.ts",
    ["kernel/run/answered"],
    [["ended === null && report.record", "ended !== null && report.record"]],
  ),
  ...editsOf(
    "src/triggers/store.ts",
    ["triggers/store"],
    [
      ["goes_on = 1 order by serial desc limit 1", "goes_on = 1 order by serial asc limit 1"],
      ["where serial < ? union all", "where serial <= ? union all"],
    ],
  ),
  ...editsOf(
    "src/triggers/store.ts",
    ["triggers/object"],
    [["serial is not (select max(serial)", "serial is (select max(serial)"]],
  ),
  ...editsOf(
    "src/webhooks/store.ts",
    ["webhooks/object"],
    [
      ["select min(seq) from deliveries where $", "select max(seq) from deliveries where $"],
      ["where next_at is not null and $", "where next_at is null and $"],
    ],
  ),
  ...editsOf(
    "src/webhooks/store.ts",
    ["webhooks/store"],
    [
      ["delivered_at < (first_at", "delivered_at <= (first_at"],
      ["failed <= LIMITS.webhookBacklog &&", "failed < LIMITS.webhookBacklog &&"],
    ],
  ),
];
