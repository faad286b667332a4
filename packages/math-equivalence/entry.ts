/** The exports of this package; README.md explains how to call it. */

export { isOpen } from "./bounds.ts";
export { lastBox, lastTagged } from "./boxes.ts";
export { MATH_LIMITS, MalformedTargetError, NoVerdictError, OverBudgetError } from "./budget.ts";
export { afterCorrections, withoutDenied } from "./denials.ts";
export { type MathEqualOptions, mathEqual } from "./equivalence.ts";
export {
  extractBoxedAnswer,
  extractMarkedAnswer,
  extractMathAnswer,
  extractMathTarget,
  extractToldNumber,
} from "./extract.ts";
export { readNumber } from "./number.ts";
export { plainDecimals, plainTypography } from "./typography.ts";
