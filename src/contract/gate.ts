/** Where the command line keeps the verdict of an eval's gates: a pair of the run's metadata. */
export const GATE_KEY = "gate";
export const GATE_VERDICTS = ["failed", "inconclusive", "passed"] as const;
export type GateVerdict = (typeof GATE_VERDICTS)[number];
