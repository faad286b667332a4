/** Numbers whose size is given by a word or a sign: `$20K`, `1.5 million`, `2½`, `2 and a half`. Linear in the text. */

const SCALES = new Map([
  ["hundred", 2],
  ["k", 3],
  ["thousand", 3],
  ["m", 6],
  ["mn", 6],
  ["mln", 6],
  ["million", 6],
  ["b", 9],
  ["bn", 9],
  ["billion", 9],
  ["trillion", 12],
]);
const DIGITS = "(?<![\\w.,])(\\d{1,3}(?:,\\d{3}){1,10}|\\d{1,30})(?:\\.(\\d{1,20}))?";
const WORD = "(?:hundred|thousand|million|billion|trillion|mn|mln|bn)";
const SCALED = new RegExp(`${DIGITS}(?:(?:\\s|~|\\\\[,; ])?(${WORD})|([kKMB]))(?![\\p{L}\\d])`, "giu");
const SCALED_TEXT = new RegExp(`${DIGITS}\\s?\\\\(?:text|mathrm)\\{\\s?(${WORD}|k|K)(?:\\}|(?=\\s))`, "gu");
/** `$20m`: without a currency sign these would be metres. */
const SCALED_MONEY = new RegExp(`(?<=[$£€]\\s?)${DIGITS}([mb])(?![\\p{L}\\d])`, "gu");

/** Numerator and denominator of each, as texts. */
const FRACTIONS = new Map<string, readonly string[]>([
  ..."½ ⅓ ⅔ ¼ ¾ ⅕ ⅖ ⅗ ⅘ ⅙ ⅚ ⅛ ⅜ ⅝ ⅞".split(" ").map((sign) => [sign, sign.normalize("NFKD").split("\u2044")] as const),
  ...["a half", "one half"].map((words) => [words, ["1", "2"]] as const),
  ...["a third", "one third"].map((words) => [words, ["1", "3"]] as const),
  ...["a quarter", "one quarter"].map((words) => [words, ["1", "4"]] as const),
  ["two thirds", ["2", "3"]] as const,
  ["three quarters", ["3", "4"]] as const,
]);
const MIXED_SIGN = /(?<![\d.,/])(\d{1,15})?\s?([½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞])/g;
const MIXED_WORDS =
  /(?<![\d.,/])(\d{1,15}) and[ -](a half|one half|a third|one third|two thirds|a quarter|one quarter|three quarters)\b/gi;
const MIXED_DIGITS = /(?<![\d.,/])(\d{1,15})(?: |-| and )(\d{1,2})\/(\d{1,3})(?![\d/]|[.,]\d)/g;

export function plainSizes(text: string): string {
  return text
    .replace(SCALED_MONEY, scaled)
    .replace(SCALED_TEXT, (all: string, whole: string, fraction: string | undefined, scale: string) => {
      const number = scaled(all, whole, fraction, scale);
      return all.endsWith("}") ? number : `${number}\\text{`;
    })
    .replace(SCALED, (all: string, whole: string, fraction: string | undefined, word?: string, letter?: string) =>
      // The flag `i` also matches small letters, which are units: 5m.
      letter === "m" || letter === "b" ? all : scaled(all, whole, fraction, word ?? letter ?? ""),
    )
    .replace(MIXED_SIGN, mixed)
    .replace(MIXED_WORDS, mixed)
    .replace(MIXED_DIGITS, (all: string, whole: string, over: string, under: string) =>
      Number(over) > 0 && Number(over) < Number(under) ? improper(whole, over, under) : all,
    );
}

function scaled(all: string, whole: string, fraction: string | undefined, scale: string): string {
  const places = SCALES.get(scale.toLowerCase());
  if (places === undefined) return all;
  const digits = (fraction ?? "").padEnd(places, "0");
  const moved = `${whole.replaceAll(",", "")}${digits.slice(0, places)}`.replace(/^0+(?=\d)/, "");
  const rest = digits.slice(places);
  return rest === "" ? moved : `${moved}.${rest}`;
}

function mixed(_all: string, whole: string | undefined, fraction: string): string {
  const [over = "0", under = "1"] = FRACTIONS.get(fraction.toLowerCase()) ?? [];
  return improper(whole ?? "0", over, under);
}

/** `5/2` of 2, 1 and 2. */
function improper(whole: string, over: string, under: string): string {
  return `${BigInt(whole) * BigInt(under) + BigInt(over)}/${under}`;
}
