import { DurableObject } from "cloudflare:workers";

export class WebhookObject extends DurableObject<Env> {}
