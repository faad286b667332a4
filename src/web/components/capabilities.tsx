/** The result of a probe of an endpoint or a replica. An unknown capability is shown as unknown, not as "no". */
import type { EndpointCapabilities } from "../../contract/endpoint.ts";
import type { ReplicaCapabilities } from "../../contract/fleet.ts";
import { Fact, Facts } from "./facts.tsx";
import { countText, NOTHING, timeText } from "./format.ts";
import { Shown } from "./shown.tsx";

function flag(value: boolean | null | undefined): string {
  if (value === null || value === undefined) return "unknown";
  return value ? "yes" : "no";
}

export function Capabilities({ seen }: { readonly seen: EndpointCapabilities | ReplicaCapabilities | null }) {
  if (seen === null) return <p className="soft">It was never probed.</p>;
  const { exactness } = seen;
  return (
    <Facts>
      {seen.error !== null && (
        <Fact name="Problem">
          <Shown text={seen.error} />
        </Fact>
      )}
      <Fact name="Models">
        <Shown text={seen.models.join(", ") || NOTHING} />
      </Fact>
      <Fact name="Context">
        {seen.max_model_len === null ? "not reported" : `${countText(seen.max_model_len)} tokens`}
      </Fact>
      <Fact name="Chat">{flag(seen.chat)}</Fact>
      <Fact name="Usage">{flag(seen.usage)}</Fact>
      <Fact name="Tools">{flag(seen.tools)}</Fact>
      <Fact name="Logprobs">{flag(seen.logprobs)}</Fact>
      <Fact name="Token ids">{flag(seen.token_ids)}</Fact>
      {exactness !== null && (
        <>
          <Fact name="One logprob per token">{flag(exactness.one_logprob_a_token)}</Fact>
          <Fact name="Logprobs are">{exactness.logprobs_mode ?? "unknown"}</Fact>
          <Fact name="Neutral defaults">{flag(exactness.neutral_defaults)}</Fact>
          {exactness.refused !== null && (
            <Fact name="Refused">
              <Shown text={exactness.refused} />
            </Fact>
          )}
        </>
      )}
      {"routes" in seen && (
        <>
          <Fact name="Version">{seen.version ?? "not reported"}</Fact>
          <Fact name="Routes">{seen.routes.join(", ") || "none"}</Fact>
        </>
      )}
      <Fact name="Checked">{timeText(seen.checked_at)}</Fact>
    </Facts>
  );
}
