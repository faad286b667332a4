/**
 * The cookie of a browser that is signed in, and which requests may come by it.
 *
 * Invariants. A browser sends a cookie with whatever any page has it send, and one of a local platform to every port of
 * its host, since cookies ignore ports. So a cookie counts only where the request was sent to the platform's own address
 * and by a page of it. Deployed that address is https, and the cookie's name keeps it to this host; on one machine it is
 * loopback with the port that listens, by whichever name, so a name that somebody made lead there is none (DNS rebinding).
 */
import { Refusal } from "../kernel/http/errors.ts";
import type { ApiContext } from "../kernel/http/operation.ts";

const LOOPBACK = ["127.0.0.1", "localhost", "[::1]"];
/** Longer than any token. */
const COOKIE_CHARACTERS = 200;

interface OwnPlace {
  readonly origin: string;
  readonly cookie: string;
  readonly secure: boolean;
}

/** Where a browser may sign in, as this request was addressed; null: not there. */
function ownPlace({ env, req }: ApiContext): OwnPlace | null {
  const { origin, protocol } = new URL(req.url);
  const port = Number(env.LOCAL_PORT) || 0;
  if (port === 0) return protocol === "https:" ? { origin, cookie: "__Host-rollcall", secure: true } : null;
  const own = LOOPBACK.some((host) => origin === new URL(`http://${host}:${port}`).origin);
  return own ? { origin, cookie: `rollcall-${port}`, secure: false } : null;
}

/** What the request's cookie holds; null without one. Throws a Refusal where another page had the browser send it. */
export function sessionTokenOf(context: ApiContext): string | null {
  const place = ownPlace(context);
  const token = place === null ? null : cookieNamed(place.cookie, context.req.header("cookie") ?? "");
  if (place === null || token === null) return null;
  refuseOtherPages(context, place);
  return token;
}

/** Null for none, and for several of the name: another server of this host may have added one. */
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

/** Refuses whoever asks for a cookie but a page of the platform's own: nobody is signed in by another site's doing. */
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

/** `Set-Cookie` with the token; null takes the cookie away. `seconds`: how long the browser keeps it. */
export function sessionCookie(context: ApiContext, token: string | null, seconds: number): string {
  const place = ownPlace(context);
  if (place === null) throw new Error("browsers cannot sign in here");
  const { cookie, secure } = place;
  const age = token === null ? 0 : seconds;
  return `${cookie}=${token ?? ""}; Path=/; Max-Age=${age}; HttpOnly; SameSite=Strict${secure ? "; Secure" : ""}`;
}
