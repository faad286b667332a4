/** The cost of a rollout from the API's data and a price list, without the platform's code: docs/billing.md in code. */
import type { RolloutView } from "../../src/contract/run.ts";

/** Micro-dollars per million tokens. */
export interface Tokens {
  readonly input_per_mtok_micros: number;
  readonly cached_input_per_mtok_micros: number;
  readonly output_per_mtok_micros: number;
}

export interface Asked {
  readonly fees: {
    readonly rollout_micros: number;
    readonly thousand_turns_micros: number;
    readonly scoring_micros: number;
    readonly push_micros: number;
    readonly gb_day_micros: number;
  };
  /** Null if the platform does not sell what the run calls. */
  readonly policy: Tokens | null;
  readonly judge: Tokens | null;
}

/** Micro-dollars by line; lines of 0 are left out. */
export type Lines = Readonly<Record<string, number>>;

/** Failures that the customer did not cause. */
const FREE = ["failed/provider", "failed/platform", "failed/environment_changed", "failed/tool_outcome_unknown"];

export function costOf({ fees, policy, judge }: Asked, rollout: RolloutView): Lines {
  const { outcome, reason, rescored_from, judgements, turns, forked_from } = rollout;
  if (FREE.includes(`${outcome}/${reason}`)) return {};
  const judged = judgements.reduce((sum, { usage }) => sum + sumOf(tokenLines(judge, [usage])), 0);
  const scored = { judge_tokens: judged, scoring: outcome === "scored" ? fees.scoring_micros : 0 };
  if (rescored_from !== null) return kept(scored);
  const own = turns.slice(forked_from === null ? 0 : forked_from.turn + 1);
  return kept({
    rollout: fees.rollout_micros,
    turns: nearest(own.length, fees.thousand_turns_micros, 1000),
    ...tokenLines(
      policy,
      own.map(({ usage }) => usage),
    ),
    ...scored,
  });
}

export function storageOf({ fees }: Asked, bytes: number): Lines {
  return kept({ storage: nearest(bytes, fees.gb_day_micros, 1_000_000_000) });
}

type Used = RolloutView["turns"][number]["usage"];

function tokenLines(prices: Tokens | null, used: readonly Used[]): Lines {
  if (prices === null) return {};
  const sum = (of: (usage: NonNullable<Used>) => number) => {
    return used.reduce((all, usage) => all + (usage === null ? 0 : of(usage)), 0);
  };
  const cached = sum(({ cached_tokens = 0 }) => cached_tokens);
  const input = sum(({ prompt_tokens }) => prompt_tokens) - cached;
  return {
    input_tokens: nearest(input, prices.input_per_mtok_micros, 1_000_000),
    cached_input_tokens: nearest(cached, prices.cached_input_per_mtok_micros, 1_000_000),
    output_tokens: nearest(
      sum(({ completion_tokens }) => completion_tokens),
      prices.output_per_mtok_micros,
      1_000_000,
    ),
  };
}

/** Rounds to whole micro-dollars, halves up. */
function nearest(count: number, price: number, per: number): number {
  const exact = BigInt(count) * BigInt(price);
  const whole = exact / BigInt(per);
  return Number(whole + ((exact - whole * BigInt(per)) * 2n >= BigInt(per) ? 1n : 0n));
}

function kept(lines: Lines): Lines {
  return Object.fromEntries(Object.entries(lines).filter(([, micros]) => micros !== 0));
}

export function sumOf(lines: Lines): number {
  return Object.values(lines).reduce((sum, micros) => sum + micros, 0);
}

export function added(all: readonly Lines[]): Lines {
  const sums: Record<string, number> = {};
  for (const lines of all) for (const [name, micros] of Object.entries(lines)) sums[name] = (sums[name] ?? 0) + micros;
  return sums;
}
