// Takes `run.completed` and `run.failed` of Rollcall, and says on GitHub what the run came to: the commit's status.
import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { Webhook } from "standardwebhooks";

const { WEBHOOK_SECRET, GITHUB_TOKEN, PORT = "8790", MIN_REWARD = "0.5" } = process.env;
const { GITHUB_API = "https://api.github.com" } = process.env;
const webhook = new Webhook(WEBHOOK_SECRET);

const server = createServer(async (request, response) => {
  const end = (status) => response.writeHead(status).end();
  const body = await text(request);
  let event;
  try {
    event = webhook.verify(body, request.headers);
  } catch {
    return end(401);
  }
  const { status, metadata, reward, url } = event.data;
  const ended = event.type === "run.completed" || event.type === "run.failed";
  if (!ended || metadata?.repo === undefined || metadata.sha === undefined) return end(204);
  const mean = reward?.mean ?? 0;
  const state = status === "completed" && mean >= Number(MIN_REWARD) ? "success" : "failure";
  const description = `${status}, mean reward ${mean.toFixed(3)}`;
  const told = { state, context: "rollcall/eval", description, target_url: url ?? undefined };
  const headers = { authorization: `Bearer ${GITHUB_TOKEN}`, "content-type": "application/json" };
  const statuses = `${GITHUB_API}/repos/${metadata.repo}/statuses/${metadata.sha}`;
  const posted = fetch(statuses, { method: "POST", headers, body: JSON.stringify(told) });
  // What GitHub did not take is delivered again.
  end(await posted.then(({ ok }) => (ok ? 204 : 502), () => 502));
});
server.listen(Number(PORT), "127.0.0.1", () => console.log("listening", server.address().port));
