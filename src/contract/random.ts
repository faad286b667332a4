/**
 * Random numbers that are the same on every machine and after every restart.
 *
 * Generator: xoshiro128** 1.1 (Blackman and Vigna, public domain): four 32-bit words of state, period 2^128 − 1.
 * Seeding: cyrb128 (bryc, public domain) over the JSON text of the parts, so ("a", 1) and ("a1") differ, and a million
 * streams of one run are distinguished by 128 bits, not by 32.
 */

export type Words = readonly [number, number, number, number];

/** A stream of unsigned 32-bit words that depends only on `parts`: the purpose first, then the seed. */
export function seededWords(...parts: readonly (string | number)[]): () => number {
  return xoshiro128(hashWords(JSON.stringify(parts)));
}

/** The same as a stream of numbers in [0, 1), 53 bits each. */
export function seededRandom(...parts: readonly (string | number)[]): () => number {
  const word = seededWords(...parts);
  return () => ((word() >>> 5) * 2 ** 26 + (word() >>> 6)) / 2 ** 53;
}

/** xoshiro128**: each call gives the next unsigned 32-bit word. The four words of `state` must not all be zero. */
export function xoshiro128(state: Words): () => number {
  let [a, b, c, d] = state;
  return () => {
    const result = Math.imul(rotateLeft(Math.imul(b, 5), 7), 9) >>> 0;
    const shifted = b << 9;
    c ^= a;
    d ^= b;
    b ^= c;
    a ^= d;
    c ^= shifted;
    d = rotateLeft(d, 11);
    return result;
  };
}

/** cyrb128: four 32-bit words from the UTF-16 code units of a text. For spreading, not for secrets. */
function hashWords(text: string): Words {
  let [a, b, c, d] = [1779033703, 3144134277, 1013904242, 2773480762];
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    a = b ^ Math.imul(a ^ unit, 597399067);
    b = c ^ Math.imul(b ^ unit, 2869860233);
    c = d ^ Math.imul(c ^ unit, 951274213);
    d = a ^ Math.imul(d ^ unit, 2716044179);
  }
  a = Math.imul(c ^ (a >>> 18), 597399067);
  b = Math.imul(d ^ (b >>> 22), 2869860233);
  c = Math.imul(a ^ (c >>> 17), 951274213);
  d = Math.imul(b ^ (d >>> 19), 2716044179);
  a ^= b ^ c ^ d;
  return [a, b ^ a, c ^ a, d ^ a];
}

function rotateLeft(word: number, by: number): number {
  return (word << by) | (word >>> (32 - by));
}
