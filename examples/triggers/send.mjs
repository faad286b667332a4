// Sends one Standard Webhooks delivery: HOOK_URL and HOOK_SECRET say where to and by what it is signed.
import { createHmac } from "node:crypto";

const { HOOK_URL, HOOK_SECRET } = process.env;
const night = process.argv[2] ?? new Date().toISOString().slice(0, 10);
const [id, timestamp] = [`nightly_${night}`, String(Math.floor(Date.now() / 1000))];
const body = JSON.stringify({ type: "training.due", data: { night, seed: Number(night.replaceAll("-", "")) } });
const key = Buffer.from(HOOK_SECRET.replace(/^whsec_/, ""), "base64");
const signature = `v1,${createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64")}`;
const signed = { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signature };
const headers = { "content-type": "application/json", ...signed };
const reply = await fetch(HOOK_URL, { method: "POST", headers, body });
console.log(reply.status, await reply.text());
process.exitCode = reply.ok ? 0 : 1;
