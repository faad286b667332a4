/**
 * Plugins for Markdown of strangers, which work on its tree: they bound what is drawn, and show characters that cannot be
 * seen. Pure.
 */

/** How many nodes are drawn, with the empty cells that complete the rows of tables. */
const NODES = 5000;
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** A node of a tree of Markdown or of HTML. */
interface Node {
  readonly type: string;
  children?: Node[];
  value?: string;
  readonly align?: readonly unknown[] | null;
  readonly properties?: Record<string, unknown>;
}

/** Every character that cannot be seen as its code, but for line feeds and tabs. */
export function showHidden(text: string): string {
  return text.replaceAll(HIDDEN, (mark) => {
    if (mark === "\n" || mark === "\t") return mark;
    return `⟦U+${(mark.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}⟧`;
  });
}

/**
 * For remark: a text that would become more than `NODES` nodes is shown as plain text. A short text can have a table
 * with a long header and many short rows, each of which gets as many cells as the header.
 */
export function remarkBounded() {
  return (tree: Node, file: { readonly value: unknown }): void => {
    let nodes = 0;
    for (const node of nodesOf(tree)) {
      nodes += 1 + emptyCells(node);
      if (nodes > NODES) {
        tree.children = [{ type: "code", value: String(file.value) }];
        return;
      }
    }
  };
}

/** For rehype: Markdown decodes references such as `&#x202E;`, so the source does not show all hidden characters. */
export function rehypeShowHidden() {
  return (tree: Node): void => {
    for (const node of nodesOf(tree)) {
      if (node.value !== undefined) node.value = showHidden(node.value);
      const alt = node.properties?.["alt"];
      if (node.properties !== undefined && typeof alt === "string") node.properties["alt"] = showHidden(alt);
    }
  };
}

function emptyCells({ type, align, children = [] }: Node): number {
  if (type !== "table") return 0;
  const given = children.reduce((all, row) => all + (row.children?.length ?? 0), 0);
  return Math.max(0, (align?.length ?? 0) * children.length - given);
}

/** Without recursion, because a stranger decides the depth. */
function* nodesOf(tree: Node): Generator<Node> {
  const open = [tree];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    yield node;
    for (const child of node.children ?? []) open.push(child);
  }
}
