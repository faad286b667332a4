/**
 * The held model as a process of its own: fork("bench/at-once/model-main.ts", [JSON of a Shape]). It sends {url} when it
 * listens, and {all: true} when all rollouts are in flight. Any message lets them go on.
 */
import { startHeldModel } from "./held-model.ts";
import { Shape } from "./shape.ts";

const model = await startHeldModel(Shape.parse(JSON.parse(process.argv[2] ?? "{}")));
process.on("message", model.letGo);
// The benchmark has ended, for any reason.
process.once("disconnect", () => process.exit(0));
process.send?.({ url: model.url });
await model.allInFlight;
process.send?.({ all: true });
