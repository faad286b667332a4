/** Runs vectors and reports which hold. Uses nothing of its runtime, so that Node and workerd run the same code. */
import * as z from "zod";
import type { Driver } from "./driver.ts";
import { DRIVERS } from "./drivers.ts";
import { failureDiffers } from "./error-classes.ts";
import { difference } from "./matches.ts";
import { type Vector, wanted } from "./vector-file.ts";

/** An expected failure differs from a result with an `error` in that it lists text that its message must contain. */
const Failure = z.strictObject({ error: z.string(), mentions: z.array(z.string()) });

export interface Verdict {
  readonly id: string;
  readonly kind: string;
  /** Null if it holds. */
  readonly message: string | null;
}

export async function runVectors(vectors: readonly Vector[]): Promise<Verdict[]> {
  const verdicts: Verdict[] = [];
  for (const vector of vectors) {
    verdicts.push({ id: vector.id, kind: vector.kind, message: await faultOf(vector) });
  }
  return verdicts;
}

/** What is wrong with one vector; null if it holds. */
export async function faultOf(vector: Vector): Promise<string | null> {
  const driver = DRIVERS.get(vector.kind);
  if (driver === undefined) return `no driver for the kind ${vector.kind}`;
  const call = prepared(driver, vector.in);
  if (typeof call === "string") return call;
  const failure = Failure.safeParse(wanted(vector));
  try {
    const actual = await call();
    if (failure.success) return `gave ${JSON.stringify(actual)}, wanted ${failure.data.error}`;
    return difference(vector.kind, wanted(vector), actual);
  } catch (thrown) {
    if (failure.success) return failureDiffers(failure.data, thrown);
    return `threw ${thrown instanceof Error ? thrown.stack : String(thrown)}`;
  }
}

function prepared(driver: Driver, input: unknown): (() => unknown) | string {
  try {
    return driver.prepare(input);
  } catch (thrown) {
    return `the driver cannot read this input: ${thrown instanceof Error ? thrown.message : thrown}`;
  }
}
