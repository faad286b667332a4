/**
 * The page that an invitation's link opens. The token is after the `#` of the link, which browsers do not send. The
 * page reads it, removes it from the address bar, and accepts the invitation when the person confirms. Replies are
 * shown as text, never as HTML.
 */
import { html, raw } from "hono/html";
import { htmlReply } from "../../kernel/http/html-reply.ts";
import type { ApiContext } from "../../kernel/http/operation.ts";

/** GET /join. */
export function joinReply(context: ApiContext): Promise<Response> {
  return htmlReply(context, PAGE, { style: STYLE, script: SCRIPT });
}

const STYLE = `
:root { color-scheme: light dark; --soft: #8882; --bad: #b91c1c; }
@media (prefers-color-scheme: dark) { :root { --bad: #fca5a5; } }
body { max-width: 36rem; margin: 0 auto; padding: 2rem 1.5rem; font: 16px/1.5 system-ui, sans-serif; }
[hidden] { display: none; }
label { display: block; font-weight: 600; }
input, button { font: inherit; padding: 0.4rem 0.75rem; }
input { box-sizing: border-box; width: 100%; margin: 0.25rem 0 1rem; }
code { font: 0.9em/1.5 ui-monospace, monospace; overflow-wrap: anywhere; }
pre { padding: 0.75rem 1rem; background: var(--soft); border-radius: 6px; white-space: pre-wrap; }
#problem { color: var(--bad); font-weight: 600; }
`;

/** Runs in the person's browser. Must not contain `</script>`, or use what the page's policy forbids. */
const SCRIPT = `
const at = (id) => document.getElementById(id);
const token = location.hash.slice(1);
history.replaceState(null, "", location.pathname);
addEventListener("hashchange", () => location.reload());

function show(problem) {
  at("problem").textContent = problem;
}

/** What the person can do about a refusal, after the platform's message about it. */
function adviceFor(status) {
  if (status === 404) return "It was revoked, or the link is incomplete.";
  if (status === 409) return "Ask the person who invited you for a new link.";
  return status === 429 || status >= 500 ? "Try again in a minute." : "";
}

async function accept() {
  const name = at("name").value.trim() || null;
  const reply = await fetch("/v1/invitations/accept", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ token, name }),
  });
  const body = await reply.json();
  if (reply.ok) return showKey(body);
  const { message } = body.error;
  show(message[0].toUpperCase() + message.slice(1) + ". " + adviceFor(reply.status));
}

function showKey({ organization, person, key }) {
  at("who").textContent = person.email + " is " + person.role + " of " + organization.name + ".";
  at("key").textContent = key.key;
  at("login").textContent = "rollcall login --platform " + location.origin;
  at("form").hidden = true;
  at("done").hidden = false;
  at("title").textContent = "You are a member";
  at("title").focus();
}

at("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  show("");
  at("accept").disabled = true;
  try {
    await accept();
  } catch {
    show("The reply could not be read. Try again; if the invitation is already used, ask for a new link.");
  }
  at("accept").disabled = false;
});

at("copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(at("key").textContent);
    at("copied").textContent = "Copied.";
  } catch {
    getSelection().selectAllChildren(at("key"));
    at("copied").textContent = "The browser does not allow copying: the key is selected, so copy it yourself.";
  }
});

at("form").hidden = token === "";
if (token === "") show("This link contains no invitation. Open the complete link that you were given.");
`;

const PAGE = String(html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Join on Rollcall</title>
<style>${raw(STYLE)}</style>
</head>
<body>
<main>
<h1 id="title" tabindex="-1">Join on Rollcall</h1>
<noscript><p>This page needs JavaScript. Without it, run <code>rollcall invitation accept</code> with this link.</p></noscript>
<form id="form" hidden>
<p>Accept the invitation to get your own key. It can be used once.</p>
<label for="name">Your name, as others see it (optional)</label>
<input id="name" autocomplete="name" maxlength="200">
<button id="accept">Accept the invitation</button>
</form>
<p id="problem" role="alert"></p>
<section id="done" hidden aria-labelledby="title">
<p id="who"></p>
<p>This is your key. It is shown only once: save it before you close the page.</p>
<pre aria-label="Your key"><code id="key"></code></pre>
<p><button id="copy" type="button">Copy the key</button> <span id="copied" role="status"></span></p>
<p>Then log in, and enter the key when asked:</p>
<pre><code id="login"></code></pre>
</section>
</main>
<script>${raw(SCRIPT)}</script>
</body>
</html>
`);
