/**
 * Random numbers that are the same on every machine: xoshiro128** 1.1 (Blackman and Vigna, public domain), seeded with
 * cyrb128 (bryc, public domain) of a text. Copied here, because this package has no dependencies.
 */

/** A stream of numbers in [0, 1), 53 bits each, that depends only on `seed`. */
export function seededRandom(seed: string): () => number {
  let [a, b, c, d] = hashWords(seed);
  const word = () => {
    const drawn = Math.imul(rotateLeft(Math.imul(b, 5), 7), 9) >>> 0;
    const shifted = b << 9;
    c ^= a;
    d ^= b;
    b ^= c;
    a ^= d;
    c ^= shifted;
    d = rotateLeft(d, 11);
    return drawn;
  };
  return () => ((word() >>> 5) * 2 ** 26 + (word() >>> 6)) / 2 ** 53;
}

function hashWords(text: string): [number, number, number, number] {
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
