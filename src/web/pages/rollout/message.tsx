/** One message, and one tool call next to its result. All of their text is data. */
import { lazy, Suspense } from "react";
import { looksFailed } from "../../../contract/looks-failed.ts";
import type { Beginning, MessageBeginning } from "../../../contract/turns.ts";
import { Badge } from "../../components/badge.tsx";
import { countText } from "../../components/format.ts";
import { Loading } from "../../components/loading.tsx";
import { Shown, ShownBlock } from "../../components/shown.tsx";
import { inOrder } from "./in-order.ts";
import { textIn } from "./turn-data.ts";

const MarkdownText = lazy(async () => ({ default: (await import("./markdown.tsx")).MarkdownText }));

interface MessageProps {
  readonly message: MessageBeginning;
  readonly markdown: boolean;
}

export function MessageView({ message, markdown }: MessageProps) {
  const { role, name, tool_call_id, content, reasoning } = message;
  return (
    <div className={`message ${role}`}>
      <p className="speaker">
        <b>{role}</b> {name !== undefined && <Shown text={name} most={100} />}
        {tool_call_id !== undefined && (
          <span className="soft">
            {" "}
            answers <Shown text={tool_call_id} most={100} />
          </span>
        )}
      </p>
      {reasoning !== undefined && (
        <details className="reasoning">
          <summary>Reasoning, {countText(reasoning.length)} characters</summary>
          <TextView part={reasoning} markdown={markdown} />
        </details>
      )}
      {inOrder(content).map(({ place, item: part }) => (
        <TextView key={place} part={part} markdown={markdown && part.type === "text"} />
      ))}
      {content.length === 0 && <p className="soft">Empty message.</p>}
    </div>
  );
}

interface TextViewProps {
  readonly part: Beginning;
  readonly markdown: boolean;
}

function TextView({ part: { text, length }, markdown }: TextViewProps) {
  return (
    <>
      {markdown ? (
        <Suspense fallback={<Loading what="Markdown" />}>
          <MarkdownText text={text} />
        </Suspense>
      ) : (
        <ShownBlock text={text} />
      )}
      {text.length < length && (
        <p className="soft">
          The first {countText(text.length)} of {countText(length)} characters.
        </p>
      )}
    </>
  );
}

interface CallProps {
  readonly call: NonNullable<MessageBeginning["tool_calls"]>[number];
  /** The result; null if the turn after it has none, undefined while it is read. */
  readonly result: MessageBeginning | null | undefined;
  /** Whether it failed; null if that was not recorded, and must be guessed from the text of its result. */
  readonly failed: boolean | null;
}

/** A call, and its result under it. */
export function CallView({ call, result, failed }: CallProps) {
  const reads = failed === null && result ? looksFailed(textIn(result)) : false;
  return (
    <div className={failed || reads ? "call failed" : "call"}>
      <p className="speaker">
        <b>
          <Shown text={call.name} most={200} />
        </b>{" "}
        <span className="soft">
          <Shown text={call.id} most={60} />
        </span>{" "}
        {failed && <Badge state="failed" tone="bad" />}
        {reads && <Badge state="reads like an error" tone="bad" />}
      </p>
      <TextView part={call.arguments} markdown={false} />
      {result === undefined && <p className="soft">Reading its result …</p>}
      {result === null && (
        <p className="soft">No result here: the rollout ended before the call, or a later turn has its result.</p>
      )}
      {inOrder(result?.content ?? []).map(({ place, item: part }) => (
        <div className="result" key={place}>
          <TextView part={part} markdown={false} />
        </div>
      ))}
    </div>
  );
}
