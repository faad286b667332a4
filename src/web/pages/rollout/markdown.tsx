/** A text as Markdown with mathematics, if the reader chose that. */
import rehypeKatex from "rehype-katex";
import remarkMath from "remark-math";
import { MarkdownText as Plain } from "../../components/markdown.tsx";

const KATEX = {
  output: "mathml",
  throwOnError: false,
  trust: false,
  maxExpand: 200,
  maxSize: 20,
  strict: "ignore",
} as const;

export function MarkdownText({ text }: { readonly text: string }) {
  return <Plain text={text} remarkPlugins={[remarkMath]} rehypePlugins={[[rehypeKatex, KATEX]]} />;
}
