/** The shape of the policy: a decoder-only transformer with RMSNorm before each block, learned positions and ReLU. */
import { VOCABULARY_SIZE } from "./vocabulary.ts";

export interface ModelConfig {
  /** A multiple of 8, as `width / heads` and `context` are: the GEMM works in columns of 8. */
  readonly vocabulary: number;
  /** Tokens a sequence may have, prompt and completion together. */
  readonly context: number;
  readonly width: number;
  readonly layers: number;
  readonly heads: number;
  readonly hidden: number;
}

export const POLICY: ModelConfig = {
  vocabulary: VOCABULARY_SIZE,
  context: 112,
  width: 64,
  layers: 2,
  heads: 4,
  hidden: 256,
};
