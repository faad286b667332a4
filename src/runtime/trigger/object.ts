import { DurableObject } from "cloudflare:workers";

export class TriggerObject extends DurableObject<Env> {}
