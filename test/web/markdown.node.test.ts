import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";
import { Readme } from "../../src/web/pages/environments/readme.tsx";
import { MarkdownText } from "../../src/web/pages/rollout/markdown.tsx";

const readme = (text: string) => renderToStaticMarkup(createElement(Readme, { text }));
const rollout = (text: string) => renderToStaticMarkup(createElement(MarkdownText, { text }));
const both = [readme, rollout];

test("a table that would have more cells than a page can draw is plain text, and other tables are tables", () => {
  const columns = 600;
  const wide = `|${"a|".repeat(columns)}\n|${"-|".repeat(columns)}\n${"b\n".repeat(1250)}`;
  for (const render of both) {
    const html = render(wide);
    expect(html).not.toContain("<table");
    expect(html).toContain("|a|a|a|");
    expect(html.length).toBeLessThan(10_000);
    expect(render("| a | b |\n|---|---|\n| 1 |\n")).toContain("<tbody><tr><td>1</td><td></td></tr></tbody>");
  }
});

test("a long address that many links name is not drawn with each of them", () => {
  const many = (address: string) => `${"[a] ".repeat(600)}\n\n[a]: ${address}\n`;
  const text = "x".repeat(2400);
  for (const html of [readme(many(`docs/${text}`)), readme(many(`https://${text}.test/`)), rollout(many(text))]) {
    expect(html.split("inert-link")).toHaveLength(601);
    expect(html.length).toBeLessThan(600 * 400);
  }
});

test("a character reference does not hide characters from the reader of a link", () => {
  for (const render of both) {
    const html = render("[docs&#x202E;](https://moc.test/) &rlm; `a` ![pic&zwj;ture](b.png)");
    expect(html).not.toMatch(/[\p{Cf}]/u);
    expect(html).toContain("<bdi>docs⟦U+202E⟧</bdi>");
    expect(html).toContain("⟦U+200F⟧");
    expect(html).toContain("pic⟦U+200D⟧ture");
  }
  expect(readme("[docs](https://moc.test/)")).toContain('<bdi>docs</bdi></a> <span class="soft">(<bdi>moc.test</bdi>)');
});

test("mathematics of a rollout is drawn", () => {
  expect(rollout("so $x^2 \\sin y$ and\n\n$$\nz\n$$\n").split("<math")).toHaveLength(3);
});
