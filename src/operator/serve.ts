/** The Worker's side of `rollcall deploy`, except for backups. */

import { Refusal } from "../kernel/http/errors.ts";
import { answerOperator, NOTHING } from "../kernel/http/operator.ts";
import { drainPage, resumePage } from "./drain.ts";
import { answerSmoke } from "./smoke-model.ts";
import { DRAIN_PATH, END_DRAIN, SMOKE_MODEL_PATH } from "./wire.ts";

type Handler = (env: Env, after: string, begin: boolean) => Promise<object>;

const HANDLERS: Readonly<Record<string, Handler>> = { "": drainPage, [END_DRAIN]: resumePage };

/** Null if the request is not for these paths. */
export function serveOperator(request: Request, env: Env): Response | Promise<Response> | null {
  const { pathname, searchParams } = new URL(request.url);
  const { method } = request;
  if (method === "POST" && pathname === `${SMOKE_MODEL_PATH}/chat/completions`) return answerSmoke(request);
  if (pathname !== DRAIN_PATH && !pathname.startsWith(`${DRAIN_PATH}/`)) return null;
  return answerOperator({ request, env, what: `${method} ${pathname}` }, async () => {
    const handler = method === "POST" ? HANDLERS[pathname.slice(DRAIN_PATH.length)] : undefined;
    if (handler === undefined) throw new Refusal(NOTHING);
    return Response.json(await handler(env, searchParams.get("after") ?? "", searchParams.has("begin")));
  });
}
