/**
 * Text that models, environments, endpoints and people wrote. It is data: it reaches the page as text and nothing else.
 * What cannot be seen, or turns the direction of what stands around it, is shown by a mark; a text beyond a bound is cut
 * until its reader asks for more, so that no line of a megabyte is ever laid out.
 */
import { Fragment, type ReactNode, useState } from "react";

/** Everything that is shown by a mark, but the tab and the line feed: marks of direction and of format too. */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;
/** Characters and lines that are laid out before the reader asks for more. */
const BOUND = 10_000;
const LINES = 100;
/** More at a time. */
const MORE = 100_000;

/** One short text in its line. */
export function Shown({ text, most = 500 }: { readonly text: string; readonly most?: number }) {
  return <bdi className="shown">{marked(text.length > most ? `${text.slice(0, most)}…` : text)}</bdi>;
}

/** A text of any length as it is, with its line breaks. */
export function ShownBlock({ text, label }: { readonly text: string; readonly label?: string }) {
  const [most, setMost] = useState(BOUND);
  const cut = cutAt(text, most);
  const shown = text.slice(0, cut);
  return (
    <>
      <pre className="shown" dir="auto" {...(label !== undefined && { role: "region", "aria-label": label })}>
        {marked(shown)}
      </pre>
      {cut < text.length && (
        <p className="soft">
          {(text.length - cut).toLocaleString("en")} of {text.length.toLocaleString("en")} characters are not shown.{" "}
          <button type="button" className="link" onClick={() => setMost(cut + MORE)}>
            Show more
          </button>
        </p>
      )}
    </>
  );
}

/** By characters; and by lines, until more was asked for. */
function cutAt(text: string, most: number): number {
  let end = Math.min(text.length, most);
  if (most === BOUND) {
    let line = -1;
    for (let lines = 0; lines < LINES; lines += 1) {
      line = text.indexOf("\n", line + 1);
      if (line === -1 || line >= end) break;
      if (lines === LINES - 1) end = line;
    }
  }
  const last = text.charCodeAt(end - 1);
  return last >= 0xd800 && last <= 0xdbff ? end - 1 : end;
}

function marked(text: string): ReactNode {
  const parts: ReactNode[] = [];
  let from = 0;
  for (const { 0: mark, index } of text.matchAll(HIDDEN)) {
    if (mark === "\n" || mark === "\t") continue;
    parts.push(text.slice(from, index), <Mark key={index} mark={mark} />);
    from = index + mark.length;
  }
  if (from === 0) return text;
  return (
    <Fragment>
      {parts}
      {text.slice(from)}
    </Fragment>
  );
}

function Mark({ mark }: { readonly mark: string }) {
  const code = `U+${(mark.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
  return (
    <span className="mark" title={`a character that cannot be seen: ${code}`}>
      {code === "U+001B" ? "ESC" : code}
    </span>
  );
}
