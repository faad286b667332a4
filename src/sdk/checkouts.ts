/** Payments, if the deployment accepts them. */
import type { CheckoutRequest, CheckoutView } from "../billing/wire.ts";
import type { PostOptions } from "./options.ts";
import { Resource } from "./resource.ts";

export class Checkouts extends Resource {
  /** Begins a payment: open `url` in the payer's browser. */
  create(request: CheckoutRequest, options: PostOptions = {}): Promise<CheckoutView> {
    return this.requests.post("/checkouts", request, options);
  }
}
