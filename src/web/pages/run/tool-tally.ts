/** Which tools the rollouts of a run called, and what came back: pure, over rows of results, one after the other. */
import { looksFailed } from "../../../contract/looks-failed.ts";
import { type Message, textOf } from "../../../contract/messages.ts";
import type { ResultRow } from "../../../contract/run.ts";

/** Answers of one form: alike but for their numbers and what they quote. */
export interface AnswerForm {
  /** The first of them, its beginning. */
  readonly text: string;
  /** Whether those calls failed; `recorded`: as was noted when they were answered, not by how the answer reads. */
  readonly failed: boolean;
  readonly recorded: boolean;
  readonly n: number;
  /** Where the first of them stands. */
  readonly rollout: string;
  readonly turn: number;
}

export interface ToolTally {
  readonly name: string;
  readonly calls: number;
  /** Calls that failed, as was recorded or, where that was not, by how the answer reads. */
  readonly failed: number;
  /** Calls that no answer came to: those of a rollout's last turn. */
  readonly unanswered: number;
  /** Those of calls that failed first, then the most frequent; never more than `FORMS` are kept of a tool. */
  readonly answers: readonly AnswerForm[];
  /** In which one of its calls failed. */
  readonly rollouts: readonly string[];
}

type Row = Pick<ResultRow, "rollout_id" | "completion" | "superseded_by" | "tool_failed">;

/** Forms that are told apart, of one tool; characters of an answer that are kept of each. */
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
  /** Rollouts that were counted. */
  rollouts = 0;
  /** Characters of the messages that were looked at. */
  characters = 0;
  /** Answers of which it was recorded whether the call failed, and answers that were judged by how they read. */
  recorded = 0;
  judged = 0;
  readonly #tools = new Map<string, Counted>();

  /** Of each slot the latest attempt counts. */
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

  /** The tool whose calls failed most comes first. */
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
    // What was recorded of a call tells its answer from others that read alike.
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

function formOf(text: string): string {
  return text
    .slice(0, SHOWN)
    .replace(/"[^"]*"/g, '"…"')
    .replace(/\d+(\.\d+)?/g, "0");
}
