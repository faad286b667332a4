/**
 * The environment's last messages, which no call of the model followed. Results of calls are shown with those calls.
 */
import type { RolloutHead } from "../../../contract/turns.ts";
import { inOrder } from "./in-order.ts";
import { MessageView } from "./message.tsx";

export function FinalResponse({ head }: { readonly head: RolloutHead }) {
  const said = head.final_env_response.filter(({ tool_call_id }) => tool_call_id === undefined);
  if (said.length === 0) return null;
  return (
    <section aria-label="Final environment messages">
      <h2>After the last turn</h2>
      {inOrder(said).map(({ place, item }) => (
        <MessageView key={place} message={item} markdown={false} />
      ))}
    </section>
  );
}
