// Receives events: verifies them, drops repeats, and prints them.   SECRET=whsec_… PORT=9000 node receiver.mjs
import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { Webhook } from "standardwebhooks";

const webhook = new Webhook(process.env.SECRET);
/** Ids of deliveries that were taken. A receiver that must not forget keeps them where it keeps what it does. */
const taken = new Set();

const server = createServer(async (request, response) => {
  const end = (status) => response.writeHead(status).end();
  const body = await text(request);
  let event;
  try {
    // The signature, over the body as it came; and the time: nothing older than five minutes.
    event = webhook.verify(body, request.headers);
  } catch {
    return end(401);
  }
  const id = request.headers["webhook-id"];
  if (!taken.has(id)) {
    taken.add(id);
    console.log(event.type, JSON.stringify(event.data));
  }
  end(204);
});
server.listen(Number(process.env.PORT ?? 9000), "127.0.0.1", () => console.log("listening", server.address().port));
