/**
 * A text as Markdown with mathematics, if the reader chose that. It is still treated as data: no HTML, no images are
 * loaded, and a link is shown only as text. Invisible characters are shown as codes, as everywhere.
 */
import { Component, type ReactNode } from "react";
import Markdown from "react-markdown";
import rehypeKatex from "rehype-katex";
import remarkGfm from "remark-gfm";
import remarkMath from "remark-math";
import { ShownBlock } from "../../components/shown.tsx";

/** Longer texts are shown as plain text: rendering them as Markdown would block the page. */
const MOST = 5000;
/** A line that opens this many nested quotations or lists is shown as plain text: nesting costs more than length. */
const NESTED = /^[ \t]*(?:(?:[>*+-]|\d+[.)])[ \t]*){20}/m;
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;
const KATEX = {
  output: "mathml",
  throwOnError: false,
  trust: false,
  maxExpand: 200,
  maxSize: 20,
  strict: "ignore",
} as const;

/** A text that cannot be rendered is shown as plain text; the rest of the rollout stays. */
export class MarkdownText extends Component<{ readonly text: string }, { readonly failed: boolean }> {
  override readonly state = { failed: false };

  static getDerivedStateFromError(): { readonly failed: boolean } {
    return { failed: true };
  }

  override render(): ReactNode {
    const { text } = this.props;
    return this.state.failed || NESTED.test(text) ? <ShownBlock text={text} /> : <Drawn text={text} />;
  }
}

function Drawn({ text }: { readonly text: string }) {
  const shown = text.slice(0, MOST).replaceAll(HIDDEN, codeOf);
  return (
    <div className="markdown" dir="auto">
      <Markdown
        skipHtml={false}
        remarkPlugins={[remarkGfm, remarkMath]}
        rehypePlugins={[[rehypeKatex, KATEX]]}
        components={{ a: InertLink, img: ImageName, h1: "h4", h2: "h4", h3: "h4", input: TaskMark }}
      >
        {shown}
      </Markdown>
      {text.length > MOST && <p className="soft">The rest is only shown without Markdown.</p>}
    </div>
  );
}

function codeOf(mark: string): string {
  if (mark === "\n" || mark === "\t") return mark;
  return `⟦U+${(mark.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}⟧`;
}

function InertLink({ href, children }: { readonly href?: string | undefined; readonly children?: React.ReactNode }) {
  return (
    <span className="inert-link">
      {children} <code>{href}</code>
    </span>
  );
}

function ImageName({ alt, src }: { readonly alt?: string | undefined; readonly src?: unknown }) {
  return (
    <span className="inert-link">
      image {alt} <code>{typeof src === "string" ? src.slice(0, 200) : ""}</code>
    </span>
  );
}

function TaskMark({ checked }: { readonly checked?: boolean | undefined }) {
  return <span>{checked === true ? "[x]" : "[ ]"}</span>;
}
