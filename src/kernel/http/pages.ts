/**
 * The web pages: one HTML file for all their paths, made by the build of src/web. Their policy lets a browser run and
 * load only what this platform serves. A page gets its data from the API.
 */
import { mediaTypeOf } from "../../contract/media-type.ts";
import type { ApiContext } from "./operation.ts";

/** No inline script or style, nothing from other origins, no frames. `data:` is for images that charts make. */
const POLICY = [
  "default-src 'none'",
  ...["script-src 'self'", "style-src 'self'", "img-src 'self' data:", "connect-src 'self'"],
  ...["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"],
].join("; ");

/** The HTML file of the build, read once for each isolate. */
let shell: string | null = null;

/** `status`: 404 if the path does not exist; the page itself shows that. */
export async function pageReply(context: ApiContext, status: 200 | 404 = 200): Promise<Response> {
  shell ??= await readShell(context.env);
  return context.body(shell, status, {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": POLICY,
    // It names the files of its build, which change with each build.
    "cache-control": "no-cache",
    "cross-origin-opener-policy": "same-origin",
  });
}

async function readShell({ ASSETS }: Env): Promise<string> {
  const reply = await ASSETS.fetch("https://assets/index.html");
  if (!reply.ok) throw new Error(`the page was not built: reading its index.html gave ${reply.status}`);
  return await reply.text();
}

/**
 * Only a local platform gets requests for them: see wrangler.toml. No other path, since an encoded slash would lead to
 * assets outside of the folder.
 */
export const ASSET_PATHS = "/assets/:name{[\\w.-]+}";

export function assetReply({ env, req }: ApiContext): Promise<Response> {
  return env.ASSETS.fetch(req.raw);
}

/** True if a browser opens the address, false if a program sends the request. */
export function isNavigation({ req }: ApiContext): boolean {
  const accepted = (req.header("accept") ?? "").split(",").map(mediaTypeOf);
  return req.method === "GET" && accepted.includes("text/html") && !req.path.startsWith("/v1/");
}
