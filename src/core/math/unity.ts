/**
 * Roots of unity, exp(iπq). Where q is a multiple of 1/120 of the form k/8 + a/12 + b/5 they are written with square
 * roots, by the values of 15°, 22.5° and 36°; any other is an atom of its own, so only its powers are known.
 */
import { imaginary, primePower, sumPower } from "./atoms.ts";
import { HALF, isWhole, multiply, ONE, type Rational, whole } from "./rational.ts";
import type { Ring, Sum } from "./ring.ts";

export function unity(ring: Ring, turn: Rational): Sum {
  const parts = multiply(ring.work, turn, whole(120n));
  if (!isWhole(parts)) {
    return ring.atom("exp(iπ)", turn, { period: 1n, value: ring.constant(whole(-1n)) });
  }
  const eighth = modulo(parts.over, 2n);
  const rest = (parts.over - 15n * eighth) / 2n;
  // 60 q = 5 a + 12 b, and 12 b ≡ 2 b (mod 5).
  const fifths = modulo(3n * rest, 5n);
  const twelfths = modulo((rest - 12n * fifths) / 5n, 24n);
  const wholes = ring.multiply(ring.power(fifteenDegrees(ring), twelfths), fifthOfHalfTurn(ring, fifths));
  return eighth === 0n ? wholes : ring.multiply(wholes, eighthOfHalfTurn(ring));
}

/** exp(iπ/12) = (√6+√2)/4 + i(√6−√2)/4 */
function fifteenDegrees(ring: Ring): Sum {
  const root2 = primePower(ring, 2n, HALF);
  const root6 = ring.multiply(root2, primePower(ring, 3n, HALF));
  return complex(ring, ring.add(root6, root2), ring.subtract(root6, root2));
}

/** exp(iπ/5) = (1+√5)/4 + i√2√(5−√5)/4, to a whole power. */
function fifthOfHalfTurn(ring: Ring, times: bigint): Sum {
  if (times === 0n) return ring.constant(ONE);
  const root5 = primePower(ring, 5n, HALF);
  const nested = sumPower(ring, ring.subtract(ring.constant(whole(5n)), root5), HALF);
  const sine = ring.multiply(primePower(ring, 2n, HALF), nested);
  return ring.power(complex(ring, ring.add(ring.constant(ONE), root5), sine), times);
}

/** exp(iπ/8), whose square is (1+i)/√2. */
function eighthOfHalfTurn(ring: Ring): Sum {
  const value = ring.power(fifteenDegrees(ring), 3n);
  return ring.atom("exp(iπ/8)", ONE, { period: 2n, value });
}

/** (real + i · imaginary) / 4 */
function complex(ring: Ring, real: Sum, imaginaryPart: Sum): Sum {
  const sum = ring.add(real, ring.multiply(imaginary(ring), imaginaryPart));
  return ring.divide(sum, whole(4n));
}

function modulo(value: bigint, by: bigint): bigint {
  return ((value % by) + by) % by;
}
