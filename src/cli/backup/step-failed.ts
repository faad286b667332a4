/** A step of a deployment failed for a reason outside of this program, such as the output of wrangler. */
export class StepFailed extends Error {
  override readonly name = "StepFailed";
}
