/** The formats of trainers in which a batch can be read, and what a request may say of them (docs/training-data.md). */
import * as z from "zod";

export const BATCH_FORMATS = ["neutral", "prime-rl", "trl", "trl-rollout", "tinker", "slime", "verl", "skyrl"] as const;
export const BatchFormat = z.enum(BATCH_FORMATS);
export type BatchFormat = z.infer<typeof BatchFormat>;
