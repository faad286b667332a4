/** Evaluates a payload with the settings of its trigger, before it reaches the trigger's object. */
import { isRecord, type Json } from "../contract/json.ts";
import { triggerDisabled } from "./begin-run.ts";
import { checkWhen, fillingOf } from "./mapping.ts";
import type { Verdict } from "./rpc.ts";
import type { TriggerRow } from "./tables.ts";

export function verdictOf(trigger: TriggerRow, payload: Json): Verdict {
  const disabled = triggerDisabled();
  if (trigger.disabled_at !== null && !disabled.ok) return { kind: "refused", error: disabled.error };
  const unmet = checkWhen(trigger.when, payload).find(({ holds }) => !holds);
  if (unmet !== undefined) {
    const found = isRecord(unmet.found) ? "" : JSON.stringify(unmet.found).slice(0, 200);
    return { kind: "ignored", reason: `when: ${unmet.path} is ${found}` };
  }
  const filling = fillingOf(trigger.map, payload);
  if (filling.ok) return { kind: "begin", filling: filling.value };
  return { kind: "refused", error: { code: "invalid_request", message: filling.message, param: filling.param } };
}
