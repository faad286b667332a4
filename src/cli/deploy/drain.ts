/**
 * Drains a deployment before an upgrade: no rollout starts, and those in flight end. The state is at the deployment, so
 * a command that ends early leaves it draining, until the same command is repeated or `rollcall deploy resume` ends it.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { DrainPage, END_DRAIN, type DrainPage as Page, ResumedPage } from "../../operator/wire.ts";
import type { OperatorClient } from "../backup/operator-client.ts";
import { StepFailed } from "../backup/step-failed.ts";

const LOOK_AGAIN_MS = 2000;
/** A lease that was being granted when the drain began is seen by the second of two looks. */
const QUIET_LOOKS = 2;
const NAMED = 5;

interface Step {
  readonly signal: AbortSignal;
  readonly log: (line: string) => void;
}

type Look = Omit<Page, "next">;

/** Waits until nothing is in flight. Once `late` is aborted it ends the drain, and throws StepFailed. */
export async function drain(operator: OperatorClient, late: AbortSignal, { signal, log }: Step): Promise<void> {
  let before = "";
  for (let [quiet, looks] = [0, 0]; ; looks += 1) {
    const look = await lookAt(operator, looks === 0);
    quiet = isQuiet(look) ? quiet + 1 : 0;
    if (quiet === QUIET_LOOKS) return;
    const said = textOf(look);
    if (late.aborted) {
      // One slow run must not stop the runs of everybody for longer than was asked for.
      await resume(operator);
      throw new StepFailed(`nothing was upgraded: ${said}; rollouts start again (--drain-wait S waits for longer)`);
    }
    if (said !== before) log(`draining: ${said}`);
    before = said;
    await sleep(LOOK_AGAIN_MS, undefined, { signal });
  }
}

/** Rollouts start again. */
export async function resume(operator: OperatorClient): Promise<void> {
  for (let after: string | null = ""; after !== null; ) {
    after = (await operator.ask(END_DRAIN, { after }, undefined, ResumedPage)).next;
  }
}

/** Throws StepFailed if another command has ended the drain. */
async function lookAt(operator: OperatorClient, begin: boolean): Promise<Look> {
  let all: Look = { in_flight: 0, granted: 0, busy: [], silent: [] };
  for (let after: string | null = ""; after !== null; ) {
    const query = begin && after === "" ? { after, begin: 1 } : { after };
    const page: Page = await operator.ask("", query, undefined, DrainPage);
    all = {
      in_flight: all.in_flight + page.in_flight,
      granted: all.granted + page.granted,
      busy: [...all.busy, ...page.busy],
      silent: [...all.silent, ...page.silent],
    };
    after = page.next;
  }
  return all;
}

function isQuiet({ in_flight, granted, silent }: Look): boolean {
  return in_flight === 0 && granted === 0 && silent.length === 0;
}

function textOf({ in_flight, granted, busy, silent }: Look): string {
  if (silent.length > 0) return `the objects of ${silent.length} runs do not answer: ${first(silent)}`;
  if (in_flight > 0) return `${in_flight} rollouts of ${busy.length} runs are in flight: ${first(busy)}`;
  return granted > 0
    ? `${granted} rollouts may still start by leases that are being taken back`
    : "nothing is in flight";
}

function first(ids: readonly string[]): string {
  return [...ids.slice(0, NAMED), ...(ids.length > NAMED ? ["…"] : [])].join(", ");
}
