/** Counts which tools the rollouts of a run called, and their results. Pure: takes the rows of results one by one. */
import { looksFailed } from "../../../contract/looks-failed.ts";
import { type Message, textOf } from "../../../contract/messages.ts";
import type { ResultRow } from "../../../contract/run.ts";

/** Results of one form: they differ only in numbers and quoted text. */
export interface AnswerForm {
  /** The beginning of the first of them. */
  readonly text: string;
  /**
   * Whether these calls failed; `recorded` if that was recorded when they were answered, and not guessed from the text.
   */
  readonly failed: boolean;
  readonly recorded: boolean;
  readonly n: number;
  /** The rollout of the first of them. */
  readonly rollout: string;
  readonly turn: number;
}

export interface ToolTally {
  readonly name: string;
  readonly calls: number;
  /** Failed calls, as recorded or, without a record, as guessed from the text of the result. */
  readonly failed: number;
  /** Calls without a result: those of a rollout's last turn. */
  readonly unanswered: number;
  /** Failed calls first, then the most frequent; at most `FORMS` are kept per tool. */
  readonly answers: readonly AnswerForm[];
  /** Rollouts in which one of its calls failed. */
  readonly rollouts: readonly string[];
}

type Row = Pick<ResultRow, "rollout_id" | "completion" | "superseded_by" | "tool_failed">;

/** The most forms per tool; and how many characters of a result are kept of each. */
const FORMS = 200;
const SHOWN = 200;

interface Counted {
  calls: number;
  failed: number;
  unanswered: number;
  readonly forms: Map<string, AnswerForm>;
  readonly rollouts: Set<string>;
}

export class ToolCounts {
  /** The number of rollouts that were counted. */
  rollouts = 0;
  /** The number of characters in the messages that were checked. */
  characters = 0;
  /** Results with a record of whether the call failed, and results that were judged by their text. */
  recorded = 0;
  judged = 0;
  readonly #tools = new Map<string, Counted>();

  /** Only the latest attempt of each slot counts. */
  add({ rollout_id, completion, superseded_by, tool_failed = [] }: Row): void {
    if (superseded_by !== null) return;
    this.rollouts += 1;
    const waiting = new Map<string, string>();
    const failures = tool_failed.values();
    let turn = -1;
    for (const message of completion as readonly unknown[] as readonly Message[]) {
      const text = textOf(message);
      this.characters += text.length;
      if (message.role === "assistant") {
        turn += 1;
        this.#leave(waiting);
        for (const { id, function: called } of message.tool_calls ?? []) {
          this.#of(called.name).calls += 1;
          waiting.set(id, called.name);
        }
      } else if (message.role === "tool") {
        const name = waiting.get(message.tool_call_id ?? "");
        waiting.delete(message.tool_call_id ?? "");
        const failed = failures.next().value;
        if (name !== undefined) this.#answer(name, { text, failed }, { rollout: rollout_id, turn });
      }
    }
    this.#leave(waiting);
  }

  /** The tool with the most failed calls comes first. */
  tallies(): readonly ToolTally[] {
    const all = [...this.#tools].map(([name, { forms, rollouts, ...counts }]) => ({
      ...{ name, ...counts, rollouts: [...rollouts] },
      answers: [...forms.values()].sort((one, other) => Number(other.failed) - Number(one.failed) || other.n - one.n),
    }));
    return all.sort((one, other) => other.failed - one.failed || other.calls - one.calls);
  }

  #leave(waiting: Map<string, string>): void {
    for (const name of waiting.values()) this.#of(name).unanswered += 1;
    waiting.clear();
  }

  #answer(
    name: string,
    { text, failed: noted }: { readonly text: string; readonly failed: boolean | null | undefined },
    place: Pick<AnswerForm, "rollout" | "turn">,
  ): void {
    const tool = this.#of(name);
    const recorded = typeof noted === "boolean";
    const failed = noted ?? looksFailed(text);
    if (recorded) this.recorded += 1;
    else this.judged += 1;
    if (failed) {
      tool.failed += 1;
      tool.rollouts.add(place.rollout);
    }
    // Results with the same text but different records are different forms.
    const form = `${noted ?? "unknown"} ${formOf(text)}`;
    const known = tool.forms.get(form);
    if (known !== undefined) tool.forms.set(form, { ...known, n: known.n + 1 });
    else if (tool.forms.size < FORMS)
      tool.forms.set(form, { text: text.slice(0, SHOWN), failed, recorded, n: 1, ...place });
  }

  #of(name: string): Counted {
    const known = this.#tools.get(name);
    if (known !== undefined) return known;
    const made: Counted = { calls: 0, failed: 0, unanswered: 0, forms: new Map(), rollouts: new Set() };
    this.#tools.set(name, made);
    return made;
  }
}

/** The beginning of a result without its numbers and quoted texts. */
export function formOf(text: string): string {
  return text
    .slice(0, SHOWN)
    .replace(/"[^"]*"/g, '"…"')
    .replace(/\d+(\.\d+)?/g, "0");
}
