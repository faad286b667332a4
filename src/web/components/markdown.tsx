/**
 * A text as Markdown. It is still treated as data: no HTML, no images are loaded, and a link is shown only as text.
 * Invisible characters are shown as codes, as everywhere. A page may render some elements in its own way.
 */
import { Component, type ReactNode } from "react";
import Markdown, { type Options } from "react-markdown";
import remarkGfm from "remark-gfm";
import { rehypeShowHidden, remarkBounded, showHidden } from "./markdown-tree.ts";
import { ShownBlock } from "./shown.tsx";
import "./markdown.css";

/** Longer texts are shown as plain text: rendering them as Markdown would block the page. */
export const MARKDOWN_CHARACTERS = 5000;
/** A line that opens this many nested quotations or lists is shown as plain text: nesting costs more than length. */
const NESTED = /^[ \t]*(?:(?:[>*+-]|\d+[.)])[ \t]*){20}/m;
/** How much of an address is shown: many links may lead to one long address. */
const ADDRESS_CHARACTERS = 200;
const INERT: NonNullable<Options["components"]> = {
  ...{ a: InertLink, img: ImageName, h1: "h4", h2: "h4", h3: "h4", input: TaskMark },
};

export interface MarkdownProps extends Pick<Options, "rehypePlugins" | "components" | "skipHtml"> {
  readonly text: string;
  /** Besides those of GitHub. */
  readonly remarkPlugins?: NonNullable<Options["remarkPlugins"]>;
}

/** A text that cannot be rendered is shown as plain text; the rest of the page stays. */
export class MarkdownText extends Component<MarkdownProps, { readonly failed: boolean }> {
  override readonly state = { failed: false };

  static getDerivedStateFromError(): { readonly failed: boolean } {
    return { failed: true };
  }

  override render(): ReactNode {
    const { text } = this.props;
    return this.state.failed || NESTED.test(text) ? <ShownBlock text={text} /> : <Drawn {...this.props} />;
  }
}

function Drawn({ text, remarkPlugins = [], rehypePlugins, components, ...options }: MarkdownProps) {
  const shown = showHidden(text.slice(0, MARKDOWN_CHARACTERS));
  return (
    <div className="markdown" dir="auto">
      <Markdown
        skipHtml={false}
        {...options}
        remarkPlugins={[remarkGfm, ...remarkPlugins, remarkBounded]}
        rehypePlugins={[rehypeShowHidden, ...(rehypePlugins ?? [])]}
        components={{ ...INERT, ...components }}
      >
        {shown}
      </Markdown>
      {text.length > MARKDOWN_CHARACTERS && <p className="soft">The rest is only shown without Markdown.</p>}
    </div>
  );
}

interface LinkProps {
  readonly href?: string | undefined;
  readonly children?: ReactNode;
}

export function InertLink({ href, children }: LinkProps) {
  return (
    <span className="inert-link">
      <bdi>{children}</bdi> <code>{cut(href)}</code>
    </span>
  );
}

function ImageName({ alt, src }: { readonly alt?: string | undefined; readonly src?: unknown }) {
  return (
    <span className="inert-link">
      image <bdi>{alt}</bdi> <code>{cut(typeof src === "string" ? src : "")}</code>
    </span>
  );
}

function cut(address = ""): string {
  return address.length > ADDRESS_CHARACTERS ? `${address.slice(0, ADDRESS_CHARACTERS)}…` : address;
}

function TaskMark({ checked }: { readonly checked?: boolean | undefined }) {
  return <span>{checked === true ? "[x]" : "[ ]"}</span>;
}
