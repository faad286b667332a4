/**
 * The body of a reply as JSON. What a parser says of a text that is none quotes a piece of it, and the piece may be of a
 * key that the server repeats: what is said here are facts about the reply, never its words.
 */
import { InvalidModelResponseError } from "../contract/errors.ts";
import { mayHoldKey, replyWithoutKey, withoutKey } from "./without-key.ts";

/** Parsed, and without the key it was asked with. Throws `InvalidModelResponseError` for what is no JSON. */
export async function replyJson(response: Response, api_key: string | null): Promise<unknown> {
  const text = await response.text();
  try {
    const reply: unknown = JSON.parse(text);
    return mayHoldKey(text, api_key) ? replyWithoutKey(reply, api_key) : reply;
  } catch (thrown) {
    if (thrown instanceof SyntaxError) {
      const type = /^[\w.+/-]{1,80}/.exec(response.headers.get("content-type") ?? "")?.[0];
      const as = withoutKey(type ?? "of no content type", api_key);
      throw new InvalidModelResponseError(
        `the reply is no JSON: status ${response.status}, ${as}, ${text.length} characters`,
      );
    }
    if (!(thrown instanceof RangeError)) throw thrown;
    throw new InvalidModelResponseError("the reply is nested too deep to be read");
  }
}
