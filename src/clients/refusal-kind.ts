/**
 * What a server refuses with 401, 403 or a 400 about the key: the key, or this one prompt. A server answers 403 for either,
 * so only some can be told from the reply; `maybe_key` is one that cannot.
 *
 * Sources: OpenRouter's errors (403 with `metadata.reasons` and `flagged_input`); Azure's content filter
 * (`ResponsibleAIPolicyViolation`); xAI ("Content violates usage guidelines"); Alibaba (`data_inspection_failed`);
 * Bedrock's guardrails; Google's `API_KEY_INVALID` (400); firewalls before a server, which answer with a page.
 */
import { isRecord } from "../contract/json.ts";

export type RefusalKind = "key" | "maybe_key" | "prompt";

const KEY_WORDS =
  /api[_ -]?key[_ ](is )?(not valid|invalid|not found|expired|missing)|(invalid|incorrect|wrong)[_ ]api[_ -]?key/;
const PROMPT_WORDS =
  /moderat|flagged|guardrail|responsibleai|data_inspection|content[_ -]?(policy|policies|filter|management|safety|violat)|(usage|safety|content|acceptable use|community)[_ ](polic|guideline)|violates? (our |the )?([a-z-]+ )?(polic|guideline)|(unsafe|harmful|inappropriate|sensitive|prohibited) (content|input|prompt|text|words?)|prompt (was |is )?(blocked|rejected)|safety (system|check|filter)/;
/** Of a refusal: it may quote the prompt. */
const LONGEST_WORDS = 8000;

/** `error`: parsed, as it came; `words`: its text. Null for a status that refuses neither. */
export function refusalKind(status: number, error: unknown, words: string): RefusalKind | null {
  const said = words.slice(0, LONGEST_WORDS).toLowerCase();
  if (status === 401) return "key";
  if (status === 400) return KEY_WORDS.test(said) ? "key" : null;
  if (status !== 403) return null;
  const { metadata } = isRecord(error) ? error : {};
  const flagged = isRecord(metadata) && ("reasons" in metadata || "flagged_input" in metadata);
  const isPage = /^\s*(\d{3} )?\s*<(!doctype|html|head|body|\?xml)/.test(said);
  return flagged || isPage || PROMPT_WORDS.test(said) ? "prompt" : "maybe_key";
}
