/**
 * The API reference as one HTML page, made only from the OpenAPI document. It loads nothing and runs nothing. Its
 * policy enforces that, and names its one stylesheet by its hash.
 */
import { html, raw } from "hono/html";
import { EXAMPLE } from "../../../contract/primitives.ts";
import { htmlReply } from "../html-reply.ts";
import type { ApiContext } from "../operation.ts";
import { GUIDE } from "./guide.ts";
import {
  type Content,
  type DocumentedOperation,
  type DocumentedReply,
  isRefusal,
  type MediaType,
  type OpenApiDocument,
  type Parameter,
} from "./openapi.ts";
import { type Html, notesOf, schemaTable, typeOf } from "./reference-schema.ts";

const pages = new WeakMap<OpenApiDocument, string>();

/** GET /docs. */
export async function docsReply(context: ApiContext, document: OpenApiDocument): Promise<Response> {
  const page = pages.get(document) ?? referencePage(document);
  pages.set(document, page);
  return await htmlReply(context, page, { style: STYLE });
}

interface Route extends DocumentedOperation {
  readonly method: string;
  readonly path: string;
}

export function referencePage(document: OpenApiDocument): string {
  const routes = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ ...operation, method, path })),
  );
  const nouns = document.tags.map((tag) => ({
    ...tag,
    routes: routes.filter(({ tags }) => tags.includes(tag.name)),
  }));
  return String(html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${document.info.title} API</title>
<style>${raw(STYLE)}</style>
</head>
<body>
<nav aria-label="Contents">
<p><a href="#top"><strong>${document.info.title} API</strong></a></p>
<ul>${GUIDE.map(({ title }) => html`<li><a href="#${anchor(title)}">${title}</a></li>`)}</ul>
${nouns.map(
  ({ name, routes: own }) => html`<p><a href="#${name}"><strong>${name}</strong></a></p>
<ul>${own.map((route) => html`<li><a href="#${route.operationId}">${method(route)}${route.summary}</a></li>`)}</ul>`,
)}
<p><a href="#schemas"><strong>schemas</strong></a></p>
</nav>
<main id="top">
<h1>${document.info.title} API</h1>
<p>As a document for tools: <a href="/openapi.json">openapi.json</a> (OpenAPI ${document.openapi}).</p>
<div class="guide">${GUIDE.map(
    ({ title, text }) => html`<section id="${anchor(title)}"><h2>${title}</h2>${prose(text)}</section>`,
  )}</div>
${nouns.map(
  ({ name, description, routes: own }) => html`<section id="${name}"><h2>${name}</h2>
<p>${description}</p>${own.map(article)}</section>`,
)}
<section id="schemas" class="schemas"><h2>Schemas</h2>
${Object.entries(document.components.schemas).map(
  ([name, schema]) => html`<h3 id="schema-${name}">${name}</h3>
${schema.description === undefined ? "" : prose(schema.description)}${schemaTable(schema)}`,
)}
</section>
</main>
</body>
</html>
`);
}

function article(route: Route): Html {
  const { operationId, path, summary, description, parameters, requestBody } = route;
  return html`<article id="${operationId}">
<h3>${method(route)}<code>${path}</code></h3>
<p>${summary}.</p>${description === undefined ? "" : prose(description)}
${parameters.length === 0 ? "" : html`<h4>Parameters</h4>${parameterTable(parameters)}`}
${requestBody === undefined ? "" : html`<h4>Body</h4>${content(requestBody.content)}`}
<h4>Example</h4>
<pre><code>${curlOf(route)}</code></pre>
${Object.entries(route.responses).map(([status, reply]) => replySection(status, reply))}
</article>`;
}

function replySection(status: string, { description, headers, content: body = {} }: DocumentedReply) {
  const named = Object.entries(headers).flatMap(([name, { description: meaning }]) =>
    meaning === undefined ? [] : [html`<p><code>${name}</code>: ${meaning}</p>`],
  );
  if (isRefusal(body)) return refusals(status, body);
  return html`<h4>${status}</h4><p>${description}</p>${named}${content(body)}`;
}

function refusals(status: string, body: Content): Html {
  const examples = Object.values(body).flatMap(({ examples = {} }) => Object.entries(examples));
  return html`<details><summary>${status} ${examples.map(([code]) => html`<code>${code}</code> `)}</summary>
${examples.map(([, { value }]) => html`<pre><code>${JSON.stringify(value)}</code></pre>`)}</details>`;
}

function content(body: Content): Html {
  return html`${Object.entries(body).map(
    ([type, media]) => html`<p class="quiet">${type}${perPart(type)}</p>
${media.schema.$ref === undefined ? schemaTable(media.schema) : html`<p>${typeOf(media.schema)}</p>`}
<pre><code>${exampleText(type, media)}</code></pre>`,
  )}`;
}

function perPart(type: string): string {
  if (type === "application/jsonl") return ": one of these a line";
  return type === "text/event-stream" ? ": one of these an event, its data as JSON" : "";
}

function exampleText(type: string, { example }: MediaType): string {
  if (typeof example === "string") return example;
  if (type === "application/jsonl") return JSON.stringify(example);
  if (type === "text/event-stream") return frameOf(example);
  return JSON.stringify(example, null, 2);
}

/** The event as it is sent. */
function frameOf(event: unknown): string {
  return Object.entries(Object(event))
    .map(([name, value]) => `${name}: ${typeof value === "object" ? JSON.stringify(value) : value}`)
    .join("\n");
}

function parameterTable(parameters: readonly Parameter[]): Html {
  const rows = parameters.map(
    ({ name, in: place, schema, description, example }) => html`<tr><td><code>${name}</code></td>
<td>${place}</td><td>${typeOf(schema)}</td><td>${notesOf(schema, description)}</td>
<td><code>${typeof example === "string" ? example : JSON.stringify(example)}</code></td></tr>`,
  );
  return html`<div class="table"><table><thead><tr><th>name</th><th>in</th><th>type</th><th></th><th>example</th></tr></thead>
<tbody>${rows}</tbody></table></div>`;
}

function curlOf({ method: verb, path, parameters, requestBody, security }: Route): string {
  const filled = parameters
    .filter((parameter) => parameter.in === "path")
    .reduce((url, { name, example }) => url.replace(`{${name}}`, String(example)), path);
  const [type, media] = Object.entries(requestBody?.content ?? {})[0] ?? [];
  const options = [
    ...(verb === "get" ? [] : [`-X ${verb.toUpperCase()}`]),
    ...security.slice(0, 1).flatMap(shownBy),
    ...(type === undefined ? [] : [`-H "content-type: ${type}"`]),
    ...(media === undefined ? [] : [`--data-binary ${quoted(JSON.stringify(media.example))}`]),
  ];
  return [`curl "$ROLLCALL_URL${filled}"`, ...options].join(" \\\n  ");
}

/** The header for the scheme. */
function shownBy(scheme: object): string[] {
  return Object.keys(scheme).map((name) => {
    return `-H "authorization: Bearer ${name === "bearer" ? "$ROLLCALL_API_KEY" : EXAMPLE.reportToken}"`;
  });
}

/** Quoted for a POSIX shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function method({ method: verb }: Route): Html {
  return html`<span class="method ${verb}">${verb.toUpperCase()}</span> `;
}

/** Paragraphs are separated by empty lines, `code` is in backticks. */
function prose(text: string): Html {
  return html`${text.split("\n\n").map((paragraph) => html`<p>${codeIn(paragraph)}</p>`)}`;
}

function codeIn(text: string): Html {
  const pieces = text.split("`");
  return html`${pieces.map((piece, index) => (index % 2 === 1 ? html`<code>${piece}</code>` : html`${piece}`))}`;
}

function anchor(title: string): string {
  return `guide-${title.toLowerCase().replaceAll(/\W+/g, "-")}`;
}

/** The style of the reference page: the reader's own fonts, and their choice of light or dark. */
const STYLE = `
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --quiet: #6b7280; --link: #2563eb; }
@media (prefers-color-scheme: dark) { :root { --quiet: #9ca3af; --link: #7aa7ff; } }
* { box-sizing: border-box; }
body { margin: 0; font: 16px/1.5 system-ui, sans-serif; }
a { color: var(--link); text-decoration: none; }
a:hover { text-decoration: underline; }
code, pre { font: 0.875em/1.5 ui-monospace, monospace; }
pre { overflow: auto; max-height: 28rem; margin: 0.5rem 0 1rem; padding: 0.75rem 1rem; background: var(--soft); border-radius: 6px; }
code { overflow-wrap: anywhere; }
pre code { overflow-wrap: normal; }
td code { overflow-wrap: break-word; }
nav { padding: 1.5rem; border-bottom: 1px solid var(--line); font-size: 0.875rem; }
nav ul { list-style: none; margin: 0 0 1rem; padding: 0; }
nav li { margin: 0.15rem 0; padding-left: 3.4rem; text-indent: -3.4rem; }
nav .method { text-indent: 0; }
nav strong { text-transform: capitalize; }
main { max-width: 60rem; padding: 1.5rem; }
h1 { margin: 0 0 0.5rem; }
h2 { margin: 3rem 0 0.5rem; padding-top: 1rem; border-top: 1px solid var(--line); text-transform: capitalize; }
h3 { margin: 2.5rem 0 0.25rem; font-size: 1.1rem; }
h4 { margin: 1.25rem 0 0.25rem; font-size: 0.95rem; }
.guide h2, .schemas h3 { text-transform: none; }
.table { overflow-x: auto; margin: 0.5rem 0 1rem; }
table { border-collapse: collapse; width: 100%; font-size: 0.875rem; }
th, td { padding: 0.3rem 0.75rem 0.3rem 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
td:first-child { white-space: nowrap; }
.quiet { color: var(--quiet); }
.method { display: inline-block; min-width: 4.2em; font: 700 0.75rem/1.5 ui-monospace, monospace; }
.get { color: #0a7d33; } .post { color: #2563eb; } .patch { color: #a15c00; } .delete { color: #c0262d; }
@media (prefers-color-scheme: dark) { .get { color: #4ade80; } .post { color: #7aa7ff; } .patch { color: #fbbf24; } .delete { color: #f87171; } }
details summary { cursor: pointer; }
@media (min-width: 64rem) {
  body { display: grid; grid-template-columns: 18rem minmax(0, 1fr); }
  nav { position: sticky; top: 0; height: 100vh; overflow: auto; border-bottom: 0; border-right: 1px solid var(--line); }
  main { padding: 1.5rem 3rem; }
}
`;
