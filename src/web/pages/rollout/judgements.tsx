/** What the judges of a rollout were asked, and what they answered. */
import { useQuery } from "@tanstack/react-query";
import type { Judgement } from "../../../contract/judgement.ts";
import type { JudgeQuestion, MessageBeginning, RolloutHead } from "../../../contract/turns.ts";
import { api } from "../../client.ts";
import { ErrorNote } from "../../components/error-note.tsx";
import { Fact, Facts } from "../../components/facts.tsx";
import { countText, dollarsText } from "../../components/format.ts";
import { Loading } from "../../components/loading.tsx";
import { Shown, ShownBlock } from "../../components/shown.tsx";
import { inOrder } from "./in-order.ts";
import { textIn } from "./turn-data.ts";

export function Judgements({ head: { id, judgements } }: { readonly head: RolloutHead }) {
  const { data, error, refetch } = useQuery({
    queryKey: ["rollout", id, "questions", judgements.length],
    queryFn: ({ signal }) => api.rollouts.questions(id, { signal }),
    enabled: judgements.length > 0,
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (judgements.length === 0) return null;
  return (
    <>
      <h2>Judges</h2>
      {error !== null && <ErrorNote error={error} onRetry={() => refetch()} />}
      {data === undefined && error === null && <Loading what="the questions" />}
      {judgements.map((judgement, at) => (
        <OneJudgement
          key={`${judgement.key}-${judgement.pass}`}
          judgement={judgement}
          question={data?.data[at]?.key === judgement.key ? data.data[at] : undefined}
        />
      ))}
    </>
  );
}

interface OneJudgementProps {
  readonly judgement: Judgement;
  /** Undefined while it is read. */
  readonly question: JudgeQuestion | undefined;
}

function OneJudgement({ judgement, question }: OneJudgementProps) {
  const { judge, model, verdict, reason, error, reply, key, left_out, cached, ...spent } = judgement;
  return (
    <article className="judgement">
      <h3>
        Judge <Shown text={judge} most={200} />
      </h3>
      {error !== null && (
        <div className="note bad">
          It gave no judgement:
          <ShownBlock text={error} />
        </div>
      )}
      <Facts>
        <Fact name="Verdict">
          <b>
            <Shown text={judgementText(verdict)} />
          </b>{" "}
          <span className="soft">read from its answer</span>
        </Fact>
        {reason !== null && (
          <Fact name="Reason">
            <ShownBlock text={reason} />
          </Fact>
        )}
        {reply !== undefined && (
          <Fact name="Reply">
            <details>
              <summary>The whole reply, as it came</summary>
              <ShownBlock text={reply} />
            </details>
          </Fact>
        )}
        <Fact name="Model asked">
          <Shown text={model} most={200} />
        </Fact>
        <Fact name="Question">
          SHA-256 <code title={key}>{key.slice(0, 8)}</code>
          {left_out > 0 && `; ${countText(left_out)} characters were cut out of its middle`}
        </Fact>
        <Fact name="Cost">{cached ? "nothing: an earlier judgement was reused" : spentText(spent)}</Fact>
      </Facts>
      {question !== undefined && <Question question={question} />}
    </article>
  );
}

/** The messages as they were sent. */
function Question({ question: { messages, messages_left_out } }: { readonly question: JudgeQuestion }) {
  if (messages === null) {
    return (
      <p className="soft">
        What it was asked cannot be shown: the question is built again from the turns, and this no longer gives the same
        question. The code of the environment may have changed.
      </p>
    );
  }
  return (
    <section aria-label="What the judge was asked">
      {inOrder(messages).map(({ place, item }) => (
        <AskedMessage key={place} message={item} />
      ))}
      {messages_left_out > 0 && <p className="soft">{countText(messages_left_out)} more messages are not shown.</p>}
    </section>
  );
}

function AskedMessage({ message }: { readonly message: MessageBeginning }) {
  const cut = message.content.reduce((sum, part) => sum + part.length - part.text.length, 0);
  const text = (
    <>
      <ShownBlock text={textIn(message)} />
      {cut > 0 && <p className="soft">{countText(cut)} more characters are not shown.</p>}
    </>
  );
  if (message.role === "system") {
    return (
      <details>
        <summary>Instructions to the judge</summary>
        {text}
      </details>
    );
  }
  return (
    <>
      <p className="soft asked-role">
        Asked, as <Shown text={message.role} most={50} />:
      </p>
      {text}
    </>
  );
}

/** A verdict as text; "none" if the judge gave none. */
export function judgementText(verdict: Judgement["verdict"]): string {
  if (verdict === null) return "none";
  return typeof verdict === "object" ? JSON.stringify(verdict) : String(verdict);
}

function spentText({ usage, calls, cost_micros }: Pick<Judgement, "usage" | "calls" | "cost_micros">): string {
  const money = cost_micros === null ? "unknown" : dollarsText(cost_micros);
  const tokens = `${countText(usage.prompt_tokens)} tokens in, ${countText(usage.completion_tokens)} out`;
  return `${money}: ${tokens}, ${calls === 1 ? "1 call" : `${countText(calls)} calls`}`;
}
