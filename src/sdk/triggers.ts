/** Triggers: each starts a run when a webhook of another service arrives; by id or name. */
import type {
  CreatedTrigger,
  TriggerPatch,
  TriggerRequestInput,
  TriggerTest,
  TriggerTestRequestInput,
  TriggerView,
} from "../triggers/wire.ts";
import type { PostOptions } from "./options.ts";
import { Editable } from "./resource.ts";
import { TriggerDeliveries } from "./trigger-deliveries.ts";

/**
 * If you give no signing secret, `create` makes one and shows it only in its reply. After `delete` no waiting delivery
 * starts a run; runs that were started continue.
 */
export class Triggers extends Editable<TriggerView, TriggerRequestInput, TriggerPatch, CreatedTrigger> {
  protected readonly path = "/triggers";
  readonly deliveries: TriggerDeliveries = new TriggerDeliveries(this.requests);

  /** What a payload would do. Starts nothing. */
  test(idOrName: string, request: TriggerTestRequestInput, options: PostOptions = {}): Promise<TriggerTest> {
    return this.requests.post(`${this.at(idOrName)}/test`, request, options);
  }
}
