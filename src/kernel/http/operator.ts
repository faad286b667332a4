/** Replies to requests that are no part of the API: for anybody but a holder of ROLLCALL_SECRET their paths do not exist. */
import { logError } from "../kit/log.ts";
import { isSameText, operatorToken } from "../kit/secrets.ts";
import { internalRefusal, Refusal, refusalReply } from "./errors.ts";

export const NOTHING = { code: "not_found", message: "there is nothing here", param: null } as const;

/** `what`: names the request in the log. */
export async function answerOperator(
  { request, env, what }: { readonly request: Request; readonly env: Env; readonly what: string },
  handle: () => Promise<Response>,
): Promise<Response> {
  try {
    const token = /^Bearer +(\S+) *$/i.exec(request.headers.get("authorization") ?? "")?.[1] ?? "";
    if (!isSameText(token, operatorToken(env))) throw new Refusal(NOTHING);
    return await handle();
  } catch (thrown) {
    if (thrown instanceof Refusal) return refusalReply(thrown);
    logError("operator", { request_id: what }, thrown);
    return refusalReply(internalRefusal());
  }
}
