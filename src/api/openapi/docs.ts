/**
 * GET /docs: the reference page. It loads nothing and runs nothing, and its policy holds a browser to that: the one
 * stylesheet on it is named by its hash.
 */

import type { ApiContext } from "../operation.ts";
import type { OpenApiDocument } from "./openapi.ts";
import { referencePage } from "./reference-page.ts";
import { STYLE } from "./reference-style.ts";

const pages = new WeakMap<OpenApiDocument, string>();

export async function docsReply(context: ApiContext, document: OpenApiDocument): Promise<Response> {
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(STYLE)));
  const style = `'sha256-${btoa(String.fromCharCode(...hash))}'`;
  const page = pages.get(document) ?? referencePage(document);
  pages.set(document, page);
  return context.body(page, 200, {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": `default-src 'none'; style-src ${style}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
  });
}
