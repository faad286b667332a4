/**
 * Text from models, environments, endpoints and people. It is data, and is only ever shown as text. Invisible
 * characters, and characters that change the reading direction, are shown as marks. A long text is cut until the reader
 * asks for more, so that a line of a megabyte is never laid out.
 */
import { Fragment, type ReactNode, useState } from "react";

/**
 * The characters that are shown as marks, including direction and format characters; the tab and the line feed are
 * excepted below.
 */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;
/** How many characters and lines are laid out before the reader asks for more. */
const BOUND = 10_000;
const LINES = 100;
/** How many more are shown at a time. */
const MORE = 100_000;

/** A short text within a line. */
export function Shown({ text, most = 500 }: { readonly text: string; readonly most?: number }) {
  return <bdi className="shown">{marked(text.length > most ? `${text.slice(0, most)}…` : text)}</bdi>;
}

/** A text of any length, with its line breaks. */
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

/** Limits the characters; and the lines, until the reader has asked for more. */
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
