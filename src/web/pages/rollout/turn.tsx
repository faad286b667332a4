/**
 * One turn: the messages that its prompt adds, the model's answer, its calls with their results, and details of the
 * call.
 */
import { type ReactNode, useState } from "react";
import type { MessageBeginning, RolloutHead, ShownTurn } from "../../../contract/turns.ts";
import { api } from "../../client.ts";
import { Badge } from "../../components/badge.tsx";
import { turnCutText } from "../../components/cut-off.ts";
import { ErrorNote } from "../../components/error-note.tsx";
import { countText, durationText, scoreText } from "../../components/format.ts";
import { JsonView } from "../../components/json-view.tsx";
import { Loading } from "../../components/loading.tsx";
import { Shown } from "../../components/shown.tsx";
import { ForkButton } from "./actions.tsx";
import { inOrder } from "./in-order.ts";
import { CallView, MessageView } from "./message.tsx";
import { StateView } from "./state.tsx";
import { TokensView } from "./tokens.tsx";
import { plainText, type TurnTexts, textIn, textsOf, useTurn, useWholeTurn, wholeTexts } from "./turn-data.ts";

/** How many messages and calls are laid out at first, and how many more at a time. */
const AT_FIRST = 12;
const MORE = 50;

interface TurnProps {
  readonly head: RolloutHead;
  readonly index: number;
  readonly open: boolean;
  readonly markdown: boolean;
  readonly onToggle: () => void;
}

export function TurnView({ head, index, ...props }: TurnProps) {
  const { data: turn, error, refetch } = useTurn(head.id, index, head.n_turns);
  const next = useTurn(head.id, index + 1, head.n_turns);
  if (error !== null) return <ErrorNote error={error} onRetry={() => refetch()} />;
  if (turn === undefined)
    return <p className={props.open ? "waiting soft open" : "waiting soft"}>Turn {index + 1} …</p>;
  const after = index + 1 < head.n_turns ? next.data && answersIn(next.data) : head.final_env_response;
  return <TurnBody head={head} turn={turn} after={after} {...props} />;
}

/** The messages that follow the turn before: none if it continues an earlier one. */
function answersIn({ prompt }: ShownTurn): readonly MessageBeginning[] {
  return prompt.after === undefined ? prompt.append : [];
}

/** What is shown below a turn on request. */
type Layer = "tokens" | "state" | "json";

interface BodyProps extends Omit<TurnProps, "index"> {
  readonly turn: ShownTurn;
  /** The messages after it; undefined while they are read. */
  readonly after: readonly MessageBeginning[] | undefined;
}

function TurnBody({ head, turn, after, open, markdown, onToggle }: BodyProps) {
  const [wholeWanted, setWhole] = useState(false);
  const [layer, setLayer] = useState<Layer | null>(null);
  const whole = useWholeTurn(head.id, turn.index, wholeWanted || layer === "json");
  const texts = wholeWanted && whole.data !== undefined ? wholeTexts(whole.data) : textsOf(turn);
  const toggle = (one: Layer) => setLayer(layer === one ? null : one);
  return (
    <>
      <TurnHeading turn={turn} open={open} onToggle={onToggle} />
      <FailedCalls head={head} index={turn.index} />
      {open ? (
        <>
          <Texts texts={texts} turn={turn} after={after} markdown={markdown} />
          <p className="row tools">
            {texts.cut && (
              <button type="button" onClick={() => setWhole(true)} disabled={wholeWanted}>
                Show in full
              </button>
            )}
            <CopyTurn id={head.id} index={turn.index} />
            {turn.tokens !== null && (
              <button type="button" aria-expanded={layer === "tokens"} onClick={() => toggle("tokens")}>
                Tokens
              </button>
            )}
            <button type="button" aria-expanded={layer === "state"} onClick={() => toggle("state")}>
              State
            </button>
            <button type="button" aria-expanded={layer === "json"} onClick={() => toggle("json")}>
              JSON
            </button>
            <ForkButton head={head} turn={turn.index} />
          </p>
          {wholeWanted && whole.isPending && <Loading what="the turn" />}
          {whole.error !== null && <ErrorNote error={whole.error} onRetry={() => whole.refetch()} />}
          {layer === "tokens" && <TokensView id={head.id} turn={turn.index} />}
          {layer === "state" && <StateView id={head.id} turn={turn.index} />}
          {layer === "json" && whole.data !== undefined && (
            <JsonView value={whole.data} what={`turn ${turn.index + 1}`} />
          )}
        </>
      ) : (
        <p className="preview">
          <Shown text={previewOf(turn)} most={240} />
        </p>
      )}
    </>
  );
}

function previewOf({ completion }: ShownTurn): string {
  const calls = (completion.tool_calls ?? []).slice(0, 5).map(({ name }) => `${name}()`);
  return [textIn(completion).slice(0, 240), ...calls].filter((part) => part !== "").join(" · ");
}

function TurnHeading({
  turn,
  open,
  onToggle,
}: {
  readonly turn: ShownTurn;
  readonly open: boolean;
  readonly onToggle: () => void;
}) {
  const { index, at_ms, latency_ms, usage, finish_reason, calls, is_truncated, tokens, prompt } = turn;
  return (
    <header className="row turn-head">
      <h3>
        <button type="button" className="link" aria-expanded={open} onClick={onToggle}>
          Turn {index + 1}
        </button>
      </h3>
      <span className="soft">at {durationText(at_ms / 1000)}</span>
      <span className="soft">took {durationText(latency_ms / 1000)}</span>
      {usage !== null && (
        <span className="soft">
          {countText(usage.prompt_tokens)} in, {countText(usage.completion_tokens)} out
        </span>
      )}
      {finish_reason !== null && <Badge state={finish_reason} tone={finish_reason === "length" ? "warn" : "plain"} />}
      {is_truncated && <Badge state={turnCutText(finish_reason)} tone="warn" />}
      {calls > 1 && <Badge state={`sent ${calls} times`} tone="warn" />}
      {tokens?.forked === true && index > 0 && <Badge state="forked" tone="warn" />}
      {turn.from_cache === true && <Badge state="from the cache" tone="plain" />}
      {turn.trained === false && <Badge state="not trained" tone="plain" />}
      <Weights turn={turn} />
      {index > 0 && (
        <span className="soft">
          keeps {countText(prompt.keep)} messages
          {prompt.after !== undefined && ` of turn ${prompt.after + 1}`}
        </span>
      )}
      <span className="soft">
        reward {scoreText(turn.reward)}
        {turn.advantage !== null && `, advantage ${scoreText(turn.advantage)}`}
      </span>
    </header>
  );
}

function Weights({
  turn: { policy_version, first_policy_version, dispatch_version, replica },
}: {
  readonly turn: ShownTurn;
}) {
  const parts: ReactNode[] = [];
  if (policy_version !== null)
    parts.push(`weights ${first_policy_version === undefined ? "" : `${first_policy_version} to `}${policy_version}`);
  if (dispatch_version !== undefined) parts.push(`dispatched with ${dispatch_version}`);
  if (replica !== undefined) parts.push(replica);
  return parts.length === 0 ? null : <Shown text={parts.join(", ")} most={200} />;
}

/** The failed attempts of this turn's call. */
function FailedCalls({ head, index }: { readonly head: RolloutHead; readonly index: number }) {
  const failed = head.failed_calls.filter(({ turn }) => turn === index);
  if (failed.length === 0) return null;
  return (
    <ul className="note bad plain">
      {failed.map(({ call, reason, error, message, status }) => (
        <li key={call}>
          Call {call} failed: {reason} <Shown text={error} most={100} /> {status} <Shown text={message} />
        </li>
      ))}
    </ul>
  );
}

interface TextsProps extends Pick<BodyProps, "turn" | "after" | "markdown"> {
  readonly texts: TurnTexts;
}

function Texts({ texts, turn, after, markdown }: TextsProps) {
  const [most, setMost] = useState(AT_FIRST);
  const { completion } = texts;
  const results = new Map(
    after?.flatMap((message) => (message.tool_call_id === undefined ? [] : [[message.tool_call_id, message]])),
  );
  // Results are shown next to the calls they answer, in the turn before, if it is the one that this one continues.
  const isApart = turn.index === 0 || turn.prompt.after !== undefined;
  const said = isApart ? texts.append : texts.append.filter(({ tool_call_id }) => tool_call_id === undefined);
  const elsewhere = texts.append.length - said.length;
  const calls = completion.tool_calls ?? [];
  const hidden = Math.max(0, said.length - most) + Math.max(0, calls.length - most);
  return (
    <>
      {elsewhere > 0 && (
        <p className="soft">
          {elsewhere === 1
            ? "1 result is shown with its call"
            : `${countText(elsewhere)} results are shown with their calls`}
          , in turn {turn.index}.
        </p>
      )}
      {inOrder(said.slice(0, most)).map(({ place, item }) => (
        <MessageView key={place} message={item} markdown={markdown} />
      ))}
      {(completion.content.length > 0 || calls.length === 0) && (
        <MessageView message={completion} markdown={markdown} />
      )}
      {inOrder(calls.slice(0, most)).map(({ place, item: call }) => (
        <CallView
          key={place}
          call={call}
          result={after === undefined ? undefined : (results.get(call.id) ?? null)}
          failed={turn.tool_failed?.[place] ?? null}
        />
      ))}
      {hidden > 0 && (
        <button type="button" onClick={() => setMost(most + MORE)}>
          Show more of {countText(hidden)} messages and calls
        </button>
      )}
      {texts.appendLeftOut + completion.left_out > 0 && (
        <p className="soft">{countText(texts.appendLeftOut + completion.left_out)} more are only in the full turn.</p>
      )}
    </>
  );
}

/** Copies the whole turn as text. */
export async function copyTurn(id: string, index: number): Promise<void> {
  await navigator.clipboard.writeText(plainText(await api.rollouts.turns.get(id, index)));
}

function CopyTurn({ id, index }: { readonly id: string; readonly index: number }) {
  const [said, setSaid] = useState("");
  const copy = () =>
    copyTurn(id, index).then(
      () => setSaid("Copied"),
      () => setSaid("Copying failed"),
    );
  return (
    <>
      <button type="button" onClick={copy}>
        Copy
      </button>
      <span role="status" className="soft">
        {said}
      </span>
    </>
  );
}
