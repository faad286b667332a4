/**
 * The pages that people look at: one HTML file for all their paths, made by the build of src/web, under a policy that
 * lets a browser run and load what this platform serves, and nothing else. What a page shows it asks of the API.
 */
import { mediaTypeOf } from "../../contract/media-type.ts";
import type { ApiContext } from "./operation.ts";

/** No inline script or style, nothing from elsewhere, in nobody's frame. `data:` is for images that charts make. */
const POLICY = [
  "default-src 'none'",
  ...["script-src 'self'", "style-src 'self'", "img-src 'self' data:", "connect-src 'self'"],
  ...["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"],
].join("; ");

/** What the build made, once an isolate. */
let shell: string | null = null;

/** `status`: 404 where the path is nobody's; the page says so itself. */
export async function pageReply(context: ApiContext, status: 200 | 404 = 200): Promise<Response> {
  shell ??= await readShell(context.env);
  return context.body(shell, status, {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": POLICY,
    // It names the files of its build, and those change with each.
    "cache-control": "no-cache",
    "cross-origin-opener-policy": "same-origin",
  });
}

async function readShell({ ASSETS }: Env): Promise<string> {
  const reply = await ASSETS.fetch("https://assets/index.html");
  if (!reply.ok) throw new Error(`the page was not built: reading its index.html gave ${reply.status}`);
  return await reply.text();
}

/** True for a browser that opens an address, rather than a program that asks for something. */
export function isNavigation({ req }: ApiContext): boolean {
  const accepted = (req.header("accept") ?? "").split(",").map(mediaTypeOf);
  return req.method === "GET" && accepted.includes("text/html") && !req.path.startsWith("/v1/");
}
