/** The batch cannot be trained as it came: it does not read (`decode`), or this trainer has no use for it (`invalid`). */
export class BatchFault extends Error {
  override readonly name = "BatchFault";
  readonly reason: "decode" | "invalid";

  constructor(reason: "decode" | "invalid", message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}
