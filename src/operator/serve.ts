/** The Worker's side of `rollcall deploy`, except for backups. */
import { answerSmoke } from "./smoke-model.ts";
import { SMOKE_MODEL_PATH } from "./wire.ts";

/** Null if the request is not for these paths. */
export function serveOperator(request: Request): Response | null {
  const { pathname } = new URL(request.url);
  return request.method === "POST" && pathname === `${SMOKE_MODEL_PATH}/chat/completions` ? answerSmoke() : null;
}
