/** Reads the record of a version's validation, which another version of the platform may have written. Pure. */
import type { Tone } from "../../components/badge.tsx";

const TONES = {
  ok: "good",
  warning: "warn",
  error: "bad",
  unchecked: "warn",
  skipped: "plain",
} as const satisfies Record<string, Tone>;
type Status = keyof typeof TONES;

export interface ShownCheck {
  readonly name: string;
  readonly status: Status;
  readonly message: string;
}

export interface ShownValidation {
  readonly ok: boolean;
  /** The names of the checks that could not be made. */
  readonly unchecked: readonly string[];
  /** Rows played. */
  readonly examples: number;
  readonly checks: readonly ShownCheck[];
  readonly policies: readonly { readonly name: string; readonly mean: number | null; readonly n: number }[];
  readonly rewards: { readonly least: number; readonly most: number } | null;
  readonly judgements: readonly {
    readonly judge: string;
    readonly judgement: string;
    readonly reward: number | null;
  }[];
  readonly equalRows: number | null;
  readonly deterministic: boolean | null;
  readonly failed: readonly { readonly name: string; readonly count: number; readonly first: string }[];
  readonly callsPerTurn: number | null;
}

export function toneOf(status: Status): Tone {
  return TONES[status];
}

type Fields = Readonly<Record<string, unknown>>;

/** Null if the record has another shape. */
export function readValidation(record: Fields): ShownValidation | null {
  const { ok, examples, checks, policies, rewards, equal_rows, deterministic, failed_functions, calls_per_turn } =
    record;
  const { judgements } = record;
  if (typeof ok !== "boolean" || typeof examples !== "number" || !Array.isArray(checks)) return null;
  const { least, most } = objectOf(rewards);
  const read = checks.map(objectOf).map(({ name, status, message }): ShownCheck => {
    return { name: textOf(name), status: isStatus(status) ? status : "error", message: textOf(message) };
  });
  return {
    ...{ ok, examples, checks: read },
    unchecked: read.filter(({ status }) => status === "unchecked").map(({ name }) => name),
    judgements: (Array.isArray(judgements) ? judgements : []).map(objectOf).map(({ judge, judgement, reward }) => {
      return { judge: textOf(judge), judgement: textOf(judgement), reward: numberOf(reward) };
    }),
    policies: Object.entries(objectOf(policies)).map(([name, policy]) => {
      const { mean, n } = objectOf(policy);
      return { name, mean: numberOf(mean), n: numberOf(n) ?? 0 };
    }),
    rewards: typeof least === "number" && typeof most === "number" ? { least, most } : null,
    equalRows: numberOf(equal_rows),
    deterministic: typeof deterministic === "boolean" ? deterministic : null,
    failed: (Array.isArray(failed_functions) ? failed_functions : []).map(objectOf).map(({ name, count, first }) => {
      return { name: textOf(name), count: numberOf(count) ?? 0, first: textOf(first) };
    }),
    callsPerTurn: numberOf(calls_per_turn),
  };
}

function objectOf(value: unknown): Fields {
  return typeof value === "object" && value !== null ? (value as Fields) : {};
}

function numberOf(value: unknown): number | null {
  return typeof value === "number" ? value : null;
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function isStatus(value: unknown): value is Status {
  return typeof value === "string" && Object.hasOwn(TONES, value);
}
