/** What `rollcall deploy` and the Worker of the same release agree on. It is not part of the public API. */

/** Where the model of the smoke run is, below the address of the deployment. Anybody may call it. */
export const SMOKE_MODEL_PATH = "/operator/smoke/v1";
/** What it answers, whatever it is asked. */
export const SMOKE_ANSWER = "ready";
