/**
 * The README of a published environment. Its author is a stranger: HTML is left out, pictures are links, and a link
 * shows the host that it leads to. Parts of it are rendered one by one, so that a long one does not block the page.
 */
import { startTransition, useMemo, useState } from "react";
import { countText } from "../../components/format.ts";
import { InertLink, MARKDOWN_CHARACTERS, type MarkdownProps, MarkdownText } from "../../components/markdown.tsx";
import { ShownBlock } from "../../components/shown.tsx";
import { splitMarkdown } from "./split-markdown.ts";

/** How many parts are rendered before the reader asks for more, and at each request. */
const PARTS = 4;
/**
 * DNS allows host names of 253 characters. An address with a longer one is not linked: the end of a name says who owns
 * it, so a name is never cut.
 */
const HOST_CHARACTERS = 260;

const COMPONENTS: NonNullable<MarkdownProps["components"]> = {
  ...{ a: OuterLink, img: PictureLink, h1: "h3", h2: "h4", h3: "h5", h4: "h6", h5: "h6", h6: "h6" },
};

export function Readme({ text }: { readonly text: string }) {
  const [most, setMost] = useState(PARTS);
  const parts = useMemo(() => splitMarkdown(text, MARKDOWN_CHARACTERS), [text]);
  return (
    <div className="readme">
      {parts.slice(0, most).map((part, at) =>
        part.length > MARKDOWN_CHARACTERS ? (
          // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a text never move
          <ShownBlock key={at} text={part} />
        ) : (
          // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a text never move
          <MarkdownText key={at} text={part} skipHtml components={COMPONENTS} />
        ),
      )}
      {most < parts.length && (
        <p className="soft">
          {countText(parts.slice(most).reduce((all, part) => all + part.length, 0))} of {countText(text.length)}{" "}
          characters are not shown.{" "}
          <button
            type="button"
            className="link"
            onClick={() => startTransition(() => setMost((before) => before + PARTS))}
          >
            Show more
          </button>
        </p>
      )}
    </div>
  );
}

interface LinkProps {
  readonly href?: string | undefined;
  readonly children?: React.ReactNode;
}

/** A link within the package leads to no page of the platform. */
function OuterLink({ href, children }: LinkProps) {
  const host = hostOf(href);
  if (host === null) return <InertLink href={href}>{children}</InertLink>;
  return (
    <>
      <a href={href} target="_blank" rel="noopener noreferrer nofollow">
        <bdi>{children}</bdi>
      </a>{" "}
      <span className="soft">
        (<bdi>{host}</bdi>)
      </span>
    </>
  );
}

function PictureLink({ alt, src }: { readonly alt?: string | undefined; readonly src?: unknown }) {
  const name = alt === undefined || alt === "" ? "picture" : `picture: ${alt}`;
  return <OuterLink href={typeof src === "string" ? src : undefined}>{name}</OuterLink>;
}

/** Null unless it is an address of the web. A host in other letters than ASCII is shown in its encoded form. */
function hostOf(href: string | undefined): string | null {
  const url = href !== undefined && URL.canParse(href) ? new URL(href) : null;
  const isOfTheWeb = url !== null && /^https?:$/.test(url.protocol) && url.host.length <= HOST_CHARACTERS;
  return isOfTheWeb ? url.host : null;
}
