/**
 * The cookie of a signed-in browser, and which requests may use it.
 *
 * Invariants. A browser sends a cookie with every request to its host, whichever page caused the request, and to every
 * port, since cookies ignore ports. So a cookie counts only if the request was sent to the platform's own address by
 * one of its own pages. For a deployment this address is https, and the cookie's name ties it to this host. On a local
 * machine it is a loopback address or `localhost` with the listening port, so another name that resolves to it is
 * refused (DNS rebinding).
 */
import { Refusal } from "../kernel/http/errors.ts";
import type { ApiContext } from "../kernel/http/operation.ts";

const LOOPBACK = ["127.0.0.1", "localhost", "[::1]"];
/** More characters than any token has. */
const COOKIE_CHARACTERS = 200;

interface OwnPlace {
  readonly origin: string;
  readonly cookie: string;
  readonly secure: boolean;
}

/** The address and cookie for signing in, as the request was addressed; null: browsers cannot sign in there. */
function ownPlace({ env, req }: ApiContext): OwnPlace | null {
  const { origin, protocol } = new URL(req.url);
  const port = Number(env.LOCAL_PORT) || 0;
  if (port === 0) return protocol === "https:" ? { origin, cookie: "__Host-rollcall", secure: true } : null;
  const own = LOOPBACK.some((host) => origin === new URL(`http://${host}:${port}`).origin);
  return own ? { origin, cookie: `rollcall-${port}`, secure: false } : null;
}

/** The token in the request's cookie; null without one. Throws a Refusal if another site's page caused the request. */
export function sessionTokenOf(context: ApiContext): string | null {
  const place = ownPlace(context);
  const token = place === null ? null : cookieNamed(place.cookie, context.req.header("cookie") ?? "");
  if (place === null || token === null) return null;
  refuseOtherPages(context, place);
  return token;
}

/** Null if there is none, or several with this name: another server on this host may have set one. */
function cookieNamed(name: string, header: string): string | null {
  const pairs = header.split(";").map((pair) => pair.trim());
  const found = pairs.filter((pair) => pair.startsWith(`${name}=`)).map((pair) => pair.slice(name.length + 1));
  const [token = ""] = found;
  return found.length === 1 && token !== "" && token.length <= COOKIE_CHARACTERS ? token : null;
}

function refuseOtherPages({ req }: ApiContext, { origin }: OwnPlace): void {
  const reads = req.method === "GET" || req.method === "HEAD";
  const [from, site] = [req.header("origin"), req.header("sec-fetch-site")];
  const ownPage = site === "same-origin" || (reads && site === "none");
  if (reads && ownPage && (from === undefined || from === origin)) return;
  if (!reads && from === origin && (site === undefined || ownPage)) return;
  const header = reads ? "Sec-Fetch-Site must be same-origin or none" : `Origin must be ${origin}`;
  const message = `a session is only for the pages of this platform: ${header}; programs must send a key`;
  throw new Refusal({ code: "forbidden", message, param: null });
}

/** Refuses a sign-in that does not come from one of the platform's own pages: another site must not sign anybody in. */
export function refuseForeignSignIn(context: ApiContext): void {
  const place = ownPlace(context);
  if (place !== null) {
    refuseOtherPages(context, place);
    return;
  }
  const port = Number(context.env.LOCAL_PORT) || 0;
  const where = port === 0 ? "over https" : `at http://127.0.0.1:${port}`;
  throw new Refusal({ code: "forbidden", message: `browsers can only sign in ${where}`, param: null });
}

/** The `Set-Cookie` header with the token; null removes the cookie. `seconds`: how long the browser keeps it. */
export function sessionCookie(context: ApiContext, token: string | null, seconds: number): string {
  const place = ownPlace(context);
  if (place === null) throw new Error("browsers cannot sign in here");
  const { cookie, secure } = place;
  const age = token === null ? 0 : seconds;
  return `${cookie}=${token ?? ""}; Path=/; Max-Age=${age}; HttpOnly; SameSite=Strict${secure ? "; Secure" : ""}`;
}
