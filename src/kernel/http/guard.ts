/**
 * Decides whether a caller may make a request. The slice that has accounts finds out who the caller is
 * (`Authentication`).
 *
 * Invariants. If a request lasts longer than its caller's data is cached, the permission is checked again before it is
 * answered. A trainer's token is accepted only for operations marked for trainers, of its own run. Other operations of
 * that run are forbidden, and other runs are not found.
 */
import type { MiddlewareHandler } from "hono";
import { type Caller, DEFAULT_PROJECT, permits } from "../../contract/identity.ts";
import type { Scope } from "../../contract/scope.ts";
import { readId } from "../kit/secrets.ts";
import { withAudit } from "./audit.ts";
import { unauthorized } from "./bearer.ts";
import { Refusal } from "./errors.ts";
import {
  type ApiContext,
  type ApiTypes,
  type Authentication,
  type Operation,
  pathParam,
  REMEMBERED_MS,
} from "./operation.ts";
import { keepPace, STRANGERS } from "./pace.ts";

/** CPU of a request whose operation states no `costMs`, in milliseconds. */
const ORDINARY_MS = 4;
/** What can identify a project: one of our ids, or a name. */
const NAME_OR_ID = /^[\w.-]{1,200}$/;
export const PROJECT_HEADER = "rollcall-project";

/** Guards operations. All of them share the cache of the authentication. */
export class Guard {
  readonly #now: () => number;
  readonly #authentication: Authentication;

  constructor(now: () => number, authentication: Authentication) {
    this.#now = now;
    this.#authentication = authentication;
  }

  /** Admits a request that may use the operation, and sets its caller and project; refuses any other. */
  of(operation: Operation): MiddlewareHandler<ApiTypes> {
    return async (context, next) => {
      const cost = operation.costMs ?? ORDINARY_MS;
      if (operation.keyless === true && !this.#authentication.isIdentified(context)) {
        await keepPace(STRANGERS, cost);
        return await next();
      }
      const begun = this.#now();
      const caller = await this.#authentication.callerOf(context);
      await this.#authentication.count(context, caller);
      await keepPace(caller.orgId, cost, operation.urgent ? "urgent" : "ordinary");
      const scope = await this.#admit(context, caller, operation);
      context.set("caller", caller);
      if (scope !== null) context.set("scope", scope);
      const stillAllowed = () => this.#stillAllowed(context, operation, scope);
      context.set("stillAllowed", stillAllowed);
      await withAudit(context, operation, next);
      if (this.#now() - begun < REMEMBERED_MS || (await stillAllowed())) return;
      await context.res.body?.cancel();
      // Removes the whole reply, with its headers.
      context.res = undefined;
      throw unauthorized("this key lost its permission while the request was waiting");
    };
  }

  /** Checks the permission, and returns the project; null for an operation about an organisation. */
  async #admit(context: ApiContext, caller: Caller, operation: Operation): Promise<Scope | null> {
    allow(context, caller, operation);
    return operation.reach === "organization" ? null : await this.#scope(context, caller);
  }

  /** True while the same request would be admitted to the same project. */
  async #stillAllowed(context: ApiContext, operation: Operation, scope: Scope | null): Promise<boolean> {
    try {
      const now = await this.#admit(context, await this.#authentication.callerOf(context), operation);
      return now?.projectId === scope?.projectId;
    } catch (thrown) {
      if (thrown instanceof Refusal) return false;
      throw thrown;
    }
  }

  /** The project of the key, or the one that the request names. */
  async #scope(context: ApiContext, { orgId, projectId }: Caller): Promise<Scope> {
    const given = context.req.header(PROJECT_HEADER);
    if (projectId !== null && (given === undefined || given === projectId)) return { orgId, projectId };
    const named = given ?? DEFAULT_PROJECT;
    // Other texts are not looked up, so they do not fill the cache.
    const found = NAME_OR_ID.test(named) ? await this.#authentication.projectId(context.env, orgId, named) : null;
    if (found !== null && (projectId === null || projectId === found)) return { orgId, projectId: found };
    if (given !== undefined) {
      throw new Refusal({ code: "not_found", message: `no project ${named}`, param: "Rollcall-Project" });
    }
    const message = "this key is for a whole organisation: name a project in the header Rollcall-Project";
    throw new Refusal({ code: "invalid_request", message, param: "Rollcall-Project" });
  }
}

function allow(context: ApiContext, caller: Caller, { permission, trainer, whole }: Operation): void {
  if (caller.runId !== null) {
    allowTrainer(context, caller.runId, trainer === true);
    return;
  }
  if (permission === "caller" || permission === "anybody") return;
  const needed = [permission].flat();
  const permitted = needed.some((one) => permits(caller.permissions, one));
  if (permitted && !(whole === true && caller.projectId !== null)) return;
  const lacks = `this key lacks the scope ${needed.join(" or ")}`;
  const message = permitted ? "this key is for one project: this request needs a key of the whole organisation" : lacks;
  throw new Refusal({ code: "forbidden", message, param: null });
}

function allowTrainer(context: ApiContext, runId: string, trainer: boolean): void {
  if (!trainer) {
    const message = "a trainer token is valid only for the trainer of its run: send an API key";
    throw new Refusal({ code: "forbidden", message, param: null });
  }
  const id = pathParam(context, "id");
  const parsed = readId(context.env, id);
  const named = parsed?.kind === "lease" ? parsed.runId : id;
  if (named !== runId) throw new Refusal({ code: "not_found", message: `no ${id}`, param: "id" });
}
