/** The token layer of one turn: the sampled tokens, their probabilities, and which of them are trained on. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { TurnTokenPage } from "../../../contract/turns.ts";
import { api } from "../../client.ts";
import { Badge } from "../../components/badge.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { Fact, Facts } from "../../components/facts.tsx";
import { countText, NOTHING, numberText, percentText } from "../../components/format.ts";
import { Loading } from "../../components/loading.tsx";
import { Shown } from "../../components/shown.tsx";
import { inOrder } from "./in-order.ts";

const PER_PAGE = 400;
/** A token is shaded more below each of these log-probabilities: a half, a fifth, a twentieth, a hundredth. */
const SHADES = [-0.69, -1.6, -3, -4.6] as const;

export function TokensView({ id, turn }: { readonly id: string; readonly turn: number }) {
  const [after, setAfter] = useState(0);
  const { data, error, refetch } = useQuery({
    queryKey: ["tokens", id, turn, after],
    queryFn: ({ signal }) =>
      api.rollouts.turns.tokens(id, turn, { after, prompt_after: after, limit: PER_PAGE }, { signal }),
    placeholderData: keepPreviousData,
    gcTime: 10_000,
  });
  if (error !== null) return <ErrorNote error={error} onRetry={() => refetch()} />;
  if (data === undefined) return <Loading what="tokens" />;
  const most = Math.max(data.completion_length, data.prompt_suffix_length);
  return (
    <section className="tokens" aria-label={`tokens of turn ${turn + 1}`}>
      <TokenFacts page={data} />
      <h4>Sampled</h4>
      <ol className="token-row" start={after + 1}>
        {inOrder(data.completion_ids).map(({ place, item }) => (
          <Token key={place} token={item} logprob={data.completion_logprobs?.[place] ?? null} mask={data.mask} />
        ))}
      </ol>
      <h4>Prompt, after {baseText(data)}</h4>
      <ol className="token-row" start={after + 1}>
        {inOrder(data.prompt_suffix_ids).map(({ place, item }) => (
          <li key={place} className="token context">
            {item}
          </li>
        ))}
      </ol>
      {most > PER_PAGE && (
        <p className="row">
          <button type="button" disabled={after === 0} onClick={() => setAfter(after - PER_PAGE)}>
            Tokens before
          </button>
          <span>
            {countText(after + 1)} to {countText(Math.min(after + PER_PAGE, most))} of {countText(most)}
          </span>
          <button type="button" disabled={after + PER_PAGE >= most} onClick={() => setAfter(after + PER_PAGE)}>
            Tokens after
          </button>
        </p>
      )}
      <p className="soft">
        The platform does not know the engine&apos;s vocabulary, so it shows ids. The darker a token, the less likely it
        was; its number is the natural logarithm of its probability.
      </p>
    </section>
  );
}

function Token({
  token,
  logprob,
  mask,
}: {
  readonly token: number;
  readonly logprob: number | null;
  readonly mask: 0 | 1;
}) {
  const shade = logprob === null ? 0 : SHADES.filter((bound) => logprob < bound).length;
  const said = logprob === null ? "no logprob" : `logprob ${logprob}, probability ${percentText(Math.exp(logprob))}`;
  return (
    <li className={`token shade-${shade}${mask === 0 ? " masked" : ""}`} title={`id ${token}, ${said}`}>
      {token}
      <small>{logprob === null ? NOTHING : numberText(logprob)}</small>
    </li>
  );
}

/** The turn whose conversation it continues. */
function baseText({ after }: TurnTokenPage): string {
  return after === undefined ? "the previous turn" : `turn ${after + 1}`;
}

function TokenFacts({ page }: { readonly page: TurnTokenPage }) {
  const { mask, untrainable, version, policy_version, first_policy_version, dispatch_version } = page;
  const logprobs = (page.completion_logprobs ?? []).filter((one) => one !== null);
  const mean = logprobs.length === 0 ? null : logprobs.reduce((sum, one) => sum + one, 0) / logprobs.length;
  return (
    <Facts>
      <Fact name="Mask of the sampled ids">
        <Badge state={mask === 1 ? "1, trained on" : "0, not trained on"} tone={mask === 1 ? "good" : "warn"} />{" "}
        {untrainable !== null && <code>{untrainable}</code>}
      </Fact>
      <Fact name="Sampled, prompt">
        {countText(page.completion_length)}, {countText(page.prompt_length)} ({countText(page.prompt_suffix_length)} of
        them new)
      </Fact>
      <Fact name="Mean logprob here">{mean === null ? "the engine sent none" : numberText(mean)}</Fact>
      <Fact name="Weights">
        <Shown
          text={[first_policy_version, policy_version].filter(Boolean).join(" to ") || "not named by the engine"}
        />
        {version !== null && `, counted as version ${version}`}
        {dispatch_version !== undefined && `, dispatched with ${dispatch_version}`}
      </Fact>
      <Fact name="Prompt">
        {page.forked
          ? `forked: it does not continue the ids of ${baseText(page)}`
          : `continues the ids of ${baseText(page)}`}
      </Fact>
    </Facts>
  );
}
