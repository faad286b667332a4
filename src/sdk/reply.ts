/** Replies as JSON. Text that is none comes from something else that listens there. */
import { unreadableReply } from "./request-error.ts";

export async function readJson<T>(reply: Response): Promise<T> {
  const text = await reply.text();
  return parsed<T>(text, reply);
}

export function parsed<T>(text: string, reply: Response): T {
  try {
    return JSON.parse(text) as T;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw unreadableReply(reply, text);
  }
}
