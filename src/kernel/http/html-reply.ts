/** Sends HTML pages that are one file. Their policy allows only the style and script whose hashes it names. */
import type { ApiContext } from "./operation.ts";

/** `style` and `script`: exactly the text between the page's tags. A script may send requests to this platform. */
export async function htmlReply(
  context: ApiContext,
  page: string,
  { style, script }: { readonly style: string; readonly script?: string },
): Promise<Response> {
  const runs = script === undefined ? [] : [`script-src ${await hashSource(script)}`, "connect-src 'self'"];
  const closed = ["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"];
  const policy = ["default-src 'none'", `style-src ${await hashSource(style)}`, ...runs, ...closed];
  return context.body(page, 200, {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": policy.join("; "),
  });
}

async function hashSource(text: string): Promise<string> {
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
  return `'sha256-${btoa(String.fromCharCode(...hash))}'`;
}
