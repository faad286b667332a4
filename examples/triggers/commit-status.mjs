// Receives `run.completed` and `run.failed` of Rollcall, and says on GitHub what the run came to: a commit's status.
import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

const { ROLLCALL_URL, ROLLCALL_API_KEY, WEBHOOK_SECRET, GITHUB_TOKEN, PORT = "8790", MIN_REWARD = "0.5" } = process.env;
const { GITHUB_API = "https://api.github.com" } = process.env;

async function ask(url, token, body) {
  const headers = { authorization: `Bearer ${token}`, accept: "application/json", "content-type": "application/json" };
  const reply = await fetch(url, { headers, ...(body && { method: "POST", body: JSON.stringify(body) }) });
  if (!reply.ok) throw new Error(`${url} answered ${reply.status}`);
  return await reply.json();
}

function isSigned(headers, body) {
  const [id, time] = [headers["webhook-id"], headers["webhook-timestamp"]];
  const key = Buffer.from(WEBHOOK_SECRET.replace(/^whsec_/, ""), "base64");
  const wanted = createHmac("sha256", key).update(`${id}.${time}.`).update(body).digest();
  const given = String(headers["webhook-signature"]).split(" ").map((one) => Buffer.from(one.slice(3), "base64"));
  const signed = given.some((one) => one.length === wanted.length && timingSafeEqual(one, wanted));
  return signed && Math.abs(Date.now() / 1000 - Number(time)) < 300;
}

async function answer(request) {
  const body = Buffer.concat(await request.toArray());
  if (!isSigned(request.headers, body)) return 401;
  const { type, data } = JSON.parse(body.toString());
  if (type !== "run.completed" && type !== "run.failed") return 204;
  const run = await ask(`${ROLLCALL_URL}/v1/runs/${data.run_id}`, ROLLCALL_API_KEY);
  const { repo, sha } = run.metadata;
  if (repo === undefined || sha === undefined) return 204;
  const mean = run.report.reward.mean ?? 0;
  const state = run.status === "completed" && mean >= Number(MIN_REWARD) ? "success" : "failure";
  const status = { state, context: "rollcall/eval", description: `${run.status}, mean reward ${mean.toFixed(3)}` };
  await ask(`${GITHUB_API}/repos/${repo}/statuses/${sha}`, GITHUB_TOKEN, status);
  return 204;
}

createServer((request, response) => {
  const failed = (error) => (console.error(error.message), 500);
  answer(request).catch(failed).then((status) => response.writeHead(status).end());
}).listen(Number(PORT), "127.0.0.1", function () {
  console.log(`listening on ${this.address().port}`);
});
