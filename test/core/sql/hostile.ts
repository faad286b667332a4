/** All hostile statements. */
import { GROWTH } from "./hostile-growth.ts";
import { LOOPS } from "./hostile-loops.ts";
import type { Hostile } from "./hostile-parts.ts";
import { TEXTS } from "./hostile-texts.ts";

export const HOSTILE: readonly Hostile[] = [...LOOPS, ...TEXTS, ...GROWTH];
