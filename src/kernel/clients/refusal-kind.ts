/**
 * Decides what a refusal is about: the key, this prompt, or possibly either. Pure: it reads the status, the content
 * type and the first characters of the body.
 *
 * A 401 is about the key. A 403 has three uses: rights of the key or account, moderation of one prompt, and block pages
 * of firewalls that object to a word of one prompt. Only the first may end a run. What these lists do not recognise
 * counts as `forbidden`, and three tasks must get it before the run ends.
 */

/**
 * `key_refused`: no call with this key is answered. `prompt_refused`: another prompt may be answered. `forbidden`: a
 * 403 that does not say which of the two. Null: another kind of refusal.
 */
export type RefusalKind = "key_refused" | "prompt_refused" | "forbidden";

export interface RefusedReply {
  readonly status: number;
  readonly content_type: string | null;
  /** The body, unchanged. */
  readonly text: string;
}

const READ_CHARACTERS = 20_000;

/**
 * Errors about the key with status 400. Only members of the error itself match: in a prompt that a server repeats, the
 * quotation marks are escaped. First Google's ErrorInfo, and OpenAI's code as gateways send it; then the messages of
 * Gemini, its OpenAI compatibility, xAI and Alibaba Model Studio.
 */
const KEY_REFUSED_WITH_400: readonly RegExp[] = [
  /"(?:reason|code|type|status)"\s*:\s*"(?:API_KEY_INVALID|invalid_?api_?key|incorrect_api_key_error)"/i,
  /"(?:message|error)"\s*:\s*"API key (?:not valid|not found|expired)/i,
  /"(?:message|error)"\s*:\s*"Missing or invalid Authorization header/i,
  /"(?:message|error)"\s*:\s*"(?:Incorrect|Invalid) API[ -]key provided/i,
];

/** Policies about who may call. They say nothing about the prompt, and are removed before a text is searched. */
const ACCESS_POLICY = new RegExp(
  String.raw`\b(?:iam|identity-based|resource(?:-based)?|session|service control|endpoint|organi[sz]ation(?:['’]?s)?|` +
    "org|access(?: control)?|conditional access|bucket|kms|key|trust|vpc|network|firewall|data|privacy|retention|" +
    "workspace|model|team|project|account|company|enterprise|administrator|admin(?:istrator)? model|" +
    "billing|role|scope|permissions?|password|rate limit)[ -]polic(?:y|ies)",
  "g",
);

/** An account, a key or an address that is blocked, for whatever reason. */
const SHUT_OUT = new RegExp(
  String.raw`\b(?:account|organi[sz]ation|workspace|project|team|user|api key|key|ip(?: address)?)\b[^.]{0,40}` +
    String.raw`\b(?:suspended|disabled|banned|deactivated|restricted|terminated|revoked|blocked|block_?list)\b`,
);
/** Missing rights. Some servers begin like this for a moderated prompt too, and then continue with the real reason. */
const NO_RIGHTS = new RegExp(
  String.raw`\bnot (?:allowed|authori[sz]ed|permitted|entitled) to (?:access|use|call)\b[^.]{0,40}\bmodel|` +
    String.raw`\b(?:no|not have|lacks?|missing|insufficient) (?:access|permissions?)\b`,
);
const MODERATED =
  /violat|flagged|safety_check_type|content[_ -]filter|\b(?:prompt|input|message|request) (?:was|is|has|contains)\b/;
const URL = /https?:\/\/[^\s"'<>]+/g;

const ASKED_OR_ANSWERED = "(?:prompt|input|content|message|query|output|response|completion)s?";

/** Bodies of a 403 that refuse one prompt, in lower case. The comment above each names the source. */
const PROMPT_REFUSED: readonly RegExp[] = [
  // OpenRouter: `metadata.reasons`, `flagged_input`.
  /moderat(?:ion|ed|or)|\bflagged|"reasons"\s*:\s*\[\s*"/,
  // OpenAI, Anthropic (usage policy), Azure (ResponsibleAIPolicyViolation), Cloudflare's DLP, gateways.
  /polic(?:y|ies)(?![a-z])|policyviolation/,
  // Azure OpenAI, Moonshot (content_filter), Azure AI Content Safety.
  /content[ _-]?(?:filter|safety|management|guideline|violat|restrict|inspection)|responsible[ _-]?ai/,
  // xAI.
  /(?:usage|community) guidelines|acceptable use|safety_check_type/,
  // Bedrock, OpenRouter, LiteLLM, Databricks, Google's Model Armor, Azure's Prompt Shields.
  /guardrail|model armor|prompt[ _-]?(?:injection|attack|shield)|jailbreak/,
  // OpenAI (safety system), Gemini (SAFETY, PROHIBITED_CONTENT, BLOCKLIST).
  /\bsafety\b|harm_category|harmful|(?:prohibited|disallowed)[ _-]?content|block_?list\b/,
  // Alibaba Model Studio (data_inspection_failed), Moonshot (considered high risk), DeepSeek.
  /data[ _-]?inspection|\b(?:illegal|dangerous|explicit|violent) (?:content|topics?)|weapons?\b|inappropriate|high[ -]risk|content exists risk/,
  // Volcengine, Z.ai, Baidu; then Zhipu (1301), Alibaba, Baidu and Tencent in Chinese.
  /sensitive[ _-]?(?:content|information|words?|topics?|data)|new_sensitive/,
  /敏感|违规|违法|不安全|审核|内容安全|不当内容|绿网/,
  // Cloudflare's AI Gateway (2016, 2017), Kong, Databricks.
  new RegExp(
    String.raw`\b${ASKED_OR_ANSWERED} (?:(?:was|were|is|are|(?:has|have) been) )?` +
      "(?:blocked|rejected|refused|denied|filtered|prohibited|disallowed|not allowed)",
  ),
  // Common phrases of moderators.
  new RegExp(String.raw`\b(?:request|${ASKED_OR_ANSWERED})\b[^.]{0,60}\bviolat`),
  // Categories of OpenAI's moderation, Llama Guard and NVIDIA NeMo Guardrails.
  /\b(?:unsafe|toxic|toxicity|offensive|profanity|nsfw|csam|sexual|violence|self[-_ /]harm|hate)\b|pii detected/,
  // Firewalls that reply with JSON.
  /\bwaf\b|web application firewall/,
];

/** For a reply that is not a success. */
export function refusalKind({ status, content_type, text }: RefusedReply): RefusalKind | null {
  const read = text.slice(0, READ_CHARACTERS);
  if (status === 401) return "key_refused";
  if (status === 400) return KEY_REFUSED_WITH_400.some((words) => words.test(read)) ? "key_refused" : null;
  if (status !== 403) return null;
  if (isPage(read, content_type)) return "prompt_refused";
  const said = unescaped(read).toLowerCase().replaceAll(URL, "").replace(ACCESS_POLICY, "");
  if (SHUT_OUT.test(said) || (NO_RIGHTS.test(said) && !MODERATED.test(said))) return "forbidden";
  return PROMPT_REFUSED.some((words) => words.test(said)) ? "prompt_refused" : "forbidden";
}

/** An HTML page of a firewall or proxy: by its tags, wherever they are, or by its type. JSON may have any type. */
function isPage(text: string, type: string | null): boolean {
  if (/<!doctype html|<html[\s>]/i.test(text)) return true;
  const body = text.trimStart();
  if (/^<(?:head|body|title|center|h[1-6]|div|p|script|style|meta)\b/i.test(body)) return true;
  return body !== "" && !/^[[{"]/.test(body) && /html/i.test(type ?? "");
}

/** Decodes `\uXXXX`, which some servers use for letters of other alphabets. */
function unescaped(text: string): string {
  return text.replace(/\\u([0-9a-f]{4})/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
}
