/**
 * GET /weight_info, POST /update_weights and /reset_prefix_cache: which weights sample, new ones for them, and nothing left of the old.
 *
 * Ours, not vLLM's: vLLM moves weights over NCCL between its own processes, and this server takes them as the body of
 * the request: little-endian 32-bit floats in the model's order. The header `x-weight-version` names them; a page in a
 * browser cannot send it to another site without being let, so no page can replace the weights.
 */

import { RequestError } from "./errors.ts";
import type { Handler } from "./reply.ts";
import { weightsFromBytes } from "./weights.ts";

const VERSION_HEADER = "x-weight-version";
const MAX_VERSION_CHARACTERS = 200;

export const weightInfo: Handler = ({ engine }) => ({
  kind: "json",
  body: { weight_version: engine.weightVersion, sha256: engine.weightsDigest },
});

export const resetPrefixCache: Handler = ({ engine }) => {
  engine.resetPrefixCache();
  return { kind: "text", type: "text/plain", text: "" };
};

/** Answers when the new weights have been taken over: whatever is asked after that is sampled by them. */
export const updateWeights: Handler = async ({ engine }, { headers, bytes }) => {
  const version = headers[VERSION_HEADER];
  if (typeof version !== "string" || version === "" || version.length > MAX_VERSION_CHARACTERS) {
    throw new RequestError(
      400,
      `the header ${VERSION_HEADER} must name the weights, in 1 to ${MAX_VERSION_CHARACTERS} characters`,
      VERSION_HEADER,
    );
  }
  try {
    await engine.updateWeights(weightsFromBytes(bytes), version);
  } catch (error) {
    // What does not fit the model is the sender's mistake, and the words say what would.
    if (error instanceof RangeError) throw new RequestError(400, error.message);
    throw error;
  }
  const sha256 = engine.weightsDigest;
  return { kind: "json", body: { message: "Weights updated", weight_version: version, sha256 } };
};
