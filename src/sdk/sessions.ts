/** Browsers signed in to the web page. */
import type { SessionRequest, SessionView, SignInCode, WhoAmI } from "../accounts/wire.ts";
import type { Deleted } from "../contract/endpoint.ts";
import type { CallOptions, PostOptions } from "./options.ts";
import { Collection } from "./resource.ts";

export class Sessions extends Collection<SessionView> {
  protected readonly path = "/sessions";

  /** A code with which a browser can sign in as this key, once, within 5 minutes; `url` opens the page with it. */
  createCode(options: PostOptions = {}): Promise<SignInCode> {
    return this.requests.post("/sign-in-codes", {}, options);
  }

  /** For the platform's own pages: signs the browser in with a code or a key. Later calls have its cookie. */
  signIn(request: SessionRequest, options: PostOptions = {}): Promise<WhoAmI> {
    return this.requests.post("/session", request, options);
  }

  /** For the platform's own pages: signs the browser out. */
  signOut(options: CallOptions = {}): Promise<Deleted> {
    return this.requests.delete("/session", options);
  }

  /** Within 5 seconds the session is refused everywhere. */
  revoke(id: string, options: CallOptions = {}): Promise<Deleted> {
    return this.requests.delete(this.at(id), options);
  }
}
