/** Payments, where the deployment takes them. */
import type { CheckoutRequest, CheckoutView } from "../billing/wire.ts";
import type { PostOptions } from "./options.ts";
import { Resource } from "./resource.ts";

export class Checkouts extends Resource {
  /** Begins a payment: send the person who pays to `url`. */
  create(request: CheckoutRequest, options: PostOptions = {}): Promise<CheckoutView> {
    return this.requests.post("/checkouts", request, options);
  }
}
