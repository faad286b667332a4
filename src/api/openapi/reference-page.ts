/**
 * The reference as one page of HTML, made from the OpenAPI document alone: whatever that says is on it.
 * It needs no other file and no script.
 */
import { GUIDE } from "./guide.ts";
import { Html, html } from "./html.ts";
import type {
  Content,
  DocumentedOperation,
  DocumentedReply,
  MediaType,
  OpenApiDocument,
  Parameter,
} from "./openapi.ts";
import { notesOf, schemaTable, typeOf } from "./reference-schema.ts";
import { STYLE } from "./reference-style.ts";

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
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${document.info.title} API</title>
<style>${new Html(STYLE)}</style>
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
`.text;
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
  if (Number(status) >= 400) return refusals(status, body);
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

/** As the event goes over the wire. */
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
    ...(security === undefined ? ['-H "authorization: Bearer $ROLLCALL_API_KEY"'] : []),
    ...(type === undefined ? [] : [`-H "content-type: ${type}"`]),
    ...(media === undefined ? [] : [`--data-binary ${quoted(JSON.stringify(media.example))}`]),
  ];
  return [`curl "$ROLLCALL_URL${filled}"`, ...options].join(" \\\n  ");
}

/** For a POSIX shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function method({ method: verb }: Route): Html {
  return html`<span class="method ${verb}">${verb.toUpperCase()}</span> `;
}

/** Paragraphs set apart by empty lines, `code` in backticks. */
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
