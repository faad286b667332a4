/**
 * Ids: `run_` + time + randomness + a short code that only the platform can make. Guessed ids are rejected by
 * arithmetic, before any object or table is accessed.
 *
 * Invariants. The time is first and big-endian in an alphabet in ASCII order, so ids sort by age. A rollout's id is
 * derived from its run's id and place (group, slot, attempt), so it is the same each time. The code covers all text
 * before it, including the prefix, so an id of one kind is never valid as another. `mac` is a keyed hash (HMAC-SHA256)
 * that returns at least `CODE_LENGTH` characters of 0-9a-z. The id of an organisation, and all that is looked up before
 * its organisation is known, has the number of the D1 database with its rows after the prefix, if that is not 0:
 * `org_2_…`, `rk_2_…`.
 */

/** A keyed hash of a text, as lower-case base32. */
export type Mac = (text: string) => string;

export interface Minting {
  /** Epoch milliseconds. */
  readonly now: number;
  /** Returns that many unpredictable bytes. */
  readonly random: (bytes: number) => Uint8Array;
  readonly mac: Mac;
  /** The number of the D1 database that the id or token names; absent: it names none, as those of database 0. */
  readonly database?: number;
}

export interface RolloutPlace {
  readonly group: number;
  readonly slot: number;
  readonly attempt: number;
}

type PlainKind =
  | "run"
  | "dataset"
  | "upload"
  | "endpoint"
  | "secret"
  | "organization"
  | "project"
  | "key"
  | "person"
  | "invitation"
  | "deletion"
  | "budget"
  | "fleet"
  | "replica"
  | "trigger"
  | "webhook"
  | "session"
  | "report_link";

export type ParsedId =
  | { readonly kind: PlainKind; readonly id: string }
  | { readonly kind: "lease"; readonly id: string; readonly runId: string; readonly serial: number }
  | ({ readonly kind: "rollout"; readonly id: string; readonly runId: string } & RolloutPlace);

/** Crockford's base32, lower case: no i, l, o, u, and in ASCII order. */
const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";
/** 50 bits of milliseconds: enough until the year 37,000. */
const TIME_LENGTH = 10;
/** 5 bits of each random byte: 80 in all. */
const RANDOM_LENGTH = 16;
/** 40 bits: one guess in 10^12 is valid. */
const CODE_LENGTH = 8;
const RUN = /^run_([0-9a-hjkmnp-tv-z]{26})[0-9a-z]{8}$/;
const PLAIN = /^([a-z]+)_(?:[1-9][0-9]?_)?[0-9a-hjkmnp-tv-z]{26}([0-9a-z]{8})$/;
const PLAIN_KINDS: ReadonlyMap<string, PlainKind> = new Map([
  ["run", "run"],
  ["ds", "dataset"],
  ["up", "upload"],
  ["ep", "endpoint"],
  ["sec", "secret"],
  ["org", "organization"],
  ["pj", "project"],
  ["key", "key"],
  ["per", "person"],
  ["inv", "invitation"],
  ["del", "deletion"],
  ["bud", "budget"],
  ["fl", "fleet"],
  ["rp", "replica"],
  ["tr", "trigger"],
  ["whe", "webhook"],
  ["ses", "session"],
  ["rl", "report_link"],
]);
/** Places in base 36, each with only one spelling: no leading zeros, at most seven digits. */
const ROLLOUT =
  /^ro_([0-9a-hjkmnp-tv-z]{26})_(0|[1-9a-z][0-9a-z]{0,6})_(0|[1-9a-z][0-9a-z]{0,6})_(0|[1-9a-z][0-9a-z]{0,6})_([0-9a-z]{8})$/;
const LEASE = /^ls_([0-9a-hjkmnp-tv-z]{26})_(0|[1-9a-z][0-9a-z]{0,6})_([0-9a-z]{8})$/;
const PLACE_LIMIT = 36 ** 7;
/** 5 bits of each random byte: 200 in all. */
const TOKEN_LENGTH = 40;
const TOKEN = /^(rk|rct|rki|rkc|rks|rkr)_(?:[1-9][0-9]?_)?([0-9a-hjkmnp-tv-z]{40})([0-9a-z]{8})$/;
const NUMBERED = /^[a-z]+_([1-9][0-9]?)_/;
/** The largest number of a D1 database that fits into an id. */
const MOST_DATABASE = 99;

export function mintRunId(minting: Minting): string {
  return mintId("run", minting);
}

/** An id of any other kind, in the same form: `ds_…`, `ep_…`, `sec_…`, `key_…`. */
export function mintId(prefix: string, { now, random, mac, database }: Minting): string {
  const text = `${prefixOf(prefix, database)}${timeText(now)}${noiseOf(random, RANDOM_LENGTH)}`;
  return `${text}${codeOf(text, mac)}`;
}

/**
 * The secret token of a key (`rk_`), the trainer of a run (`rct_`), an invited person (`rki_`), a browser that signs in
 * (`rkc_`) or is signed in (`rks_`), or a reader of a shared report (`rkr_`).
 */
export type TokenKind = "rk" | "rct" | "rki" | "rkc" | "rks" | "rkr";

export function mintToken(kind: TokenKind, { random, mac, database }: Omit<Minting, "now">): string {
  const text = `${prefixOf(kind, database)}${noiseOf(random, TOKEN_LENGTH)}`;
  return `${text}${codeOf(text, mac)}`;
}

/** The kind of a token made with this hash; null for any other text, which needs no lookup. */
export function tokenKind(token: string, mac: Mac): TokenKind | null {
  const [, kind, , code] = TOKEN.exec(token) ?? [];
  if (kind === undefined || !passes(token.slice(0, -CODE_LENGTH), code, mac)) return null;
  return kind as TokenKind;
}

function prefixOf(kind: string, database = 0): string {
  if (!Number.isInteger(database) || database < 0 || database > MOST_DATABASE) {
    throw new RangeError(`${database} is not the number of a D1 database`);
  }
  return database === 0 ? `${kind}_` : `${kind}_${database}_`;
}

/** The number of the D1 database that an id or a token names. 0 also for any other text. */
export function databaseNumberIn(text: string): number {
  return Number(NUMBERED.exec(text)?.[1] ?? 0);
}

/** The id of one attempt at one slot of a group; always the same. */
export function rolloutId(runId: string, place: RolloutPlace, mac: Mac): string {
  return idWithin("ro", runId, [place.group, place.slot, place.attempt], mac);
}

/** The id of a lease of a batch, by its serial number among the run's leases. */
export function leaseId(runId: string, serial: number, mac: Mac): string {
  return idWithin("ls", runId, [serial], mac);
}

/** The id of a thing in a run. It contains the run's id, so no lookup is needed to find the run. */
function idWithin(prefix: string, runId: string, places: readonly number[], mac: Mac): string {
  const core = RUN.exec(runId)?.[1];
  if (core === undefined) throw new TypeError("not the id of a run");
  const text = `${prefix}_${core}_${places.map(placeText).join("_")}`;
  return `${text}_${codeOf(text, mac)}`;
}

/** What a valid id stands for; null for any other text. Never throws for a text. */
export function parseId(text: string, mac: Mac): ParsedId | null {
  const plain = PLAIN.exec(text);
  if (plain !== null) {
    const kind = PLAIN_KINDS.get(plain[1] ?? "");
    if (kind === undefined || !passes(text.slice(0, -CODE_LENGTH), plain[2], mac)) return null;
    return { kind, id: text };
  }
  const within = ROLLOUT.exec(text) ?? LEASE.exec(text);
  if (within === null) return null;
  const [core = "", ...rest] = within.slice(1);
  if (!passes(text.slice(0, -CODE_LENGTH - 1), rest.pop(), mac)) return null;
  const runText = `run_${core}`;
  const runId = `${runText}${codeOf(runText, mac)}`;
  const [first = 0, slot, attempt] = rest.map((digits) => Number.parseInt(digits, 36));
  if (slot === undefined || attempt === undefined) {
    return { kind: "lease", id: text, runId, serial: first };
  }
  return { kind: "rollout", id: text, runId, group: first, slot, attempt };
}

/**
 * The place in a rollout's id that was verified before it was stored, so its code is not computed again. Throws a
 * TypeError for any other text.
 */
export function placeOfStoredId(id: string): RolloutPlace {
  const [, , ...places] = ROLLOUT.exec(id) ?? [];
  const [group, slot, attempt] = places.slice(0, 3).map((digits) => Number.parseInt(digits, 36));
  if (group === undefined || slot === undefined || attempt === undefined) {
    throw new TypeError(`not the id of a rollout: ${id.slice(0, 100)}`);
  }
  return { group, slot, attempt };
}

function noiseOf(random: Minting["random"], length: number): string {
  const noise = [...random(length)].map((byte) => ALPHABET.charAt(byte & 31));
  if (noise.length !== length) throw new RangeError("too few random bytes");
  return noise.join("");
}

function codeOf(text: string, mac: Mac): string {
  const code = mac(text).slice(0, CODE_LENGTH);
  if (!/^[0-9a-z]{8}$/.test(code)) throw new RangeError("the keyed hash is too short or not base32");
  return code;
}

/** Compares all characters whatever the first ones are, so that the time reveals nothing about the code. */
function passes(text: string, code = "", mac: Mac): boolean {
  const expected = codeOf(text, mac);
  let difference = expected.length ^ code.length;
  for (let at = 0; at < expected.length; at += 1) {
    difference |= expected.charCodeAt(at) ^ code.charCodeAt(at);
  }
  return difference === 0;
}

function timeText(now: number): string {
  let rest = Math.floor(now);
  let text = "";
  for (let at = 0; at < TIME_LENGTH; at += 1) {
    text = ALPHABET.charAt(rest % 32) + text;
    rest = Math.floor(rest / 32);
  }
  return text;
}

function placeText(count: number): string {
  if (!Number.isInteger(count) || count < 0 || count >= PLACE_LIMIT) {
    throw new RangeError(`${count} is not a valid position in a run`);
  }
  return count.toString(36);
}
