/**
 * Signs in with the one-time code of a link or with an API key. Either is exchanged for a cookie that scripts cannot
 * read; neither is stored here. The code is after the `#` of the URL, and is removed from it before any request.
 */
import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useEffect, useState } from "react";
import { api } from "../../client.ts";
import { ErrorNote } from "../../components/error-note.tsx";
import { Loading } from "../../components/loading.tsx";
import { useDocumentTitle } from "../../layout/title.ts";
import { destinationOf } from "./destination.ts";

/** Reads the parameters of the URL once, and removes them from it. */
function takeAddress(): { readonly code: string | null; readonly to: string } {
  const behind = new URLSearchParams(location.hash.slice(1));
  const to = destinationOf(behind.get("to") ?? new URLSearchParams(location.search).get("to"));
  if (location.hash !== "") history.replaceState(null, "", location.pathname + location.search);
  return { code: behind.get("code"), to };
}

/** A page that is rendered twice must still find the code. */
let taken: ReturnType<typeof takeAddress> | null = null;

export function Page() {
  useDocumentTitle("Sign in");
  const [{ code, to }] = useState(() => {
    taken ??= takeAddress();
    return taken;
  });
  const { mutate, error, isPending, isSuccess } = useMutation({
    mutationFn: (by: { readonly code: string } | { readonly key: string }) => api.sessions.signIn(by),
    // The page loads again as the signed-in user.
    onSuccess: () => location.replace(to),
  });
  const [asked, setAsked] = useState(false);
  useEffect(() => {
    if (code === null) return;
    taken = { code: null, to };
    // Another person's link must not silently replace an existing session.
    api.whoAmI().then(
      () => setAsked(true),
      () => mutate({ code }),
    );
  }, [code, to, mutate]);
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const key = new FormData(event.currentTarget).get("key");
    if (typeof key === "string" && key.trim() !== "") mutate({ key: key.trim() });
  };
  return (
    <main className="narrow">
      <h1>Sign in to Rollcall</h1>
      {(isPending || isSuccess) && <Loading what="your session" />}
      {error !== null && <ErrorNote error={error} />}
      {asked && code !== null && !isPending && !isSuccess && (
        <div className="note warn">
          <p>You are already signed in. This link signs you in as the person or key that created it.</p>
          <p className="row">
            <button type="button" onClick={() => mutate({ code })}>
              Sign in with the link
            </button>
            <a href={to}>Keep this session</a>
          </p>
        </div>
      )}
      {!asked && !isPending && !isSuccess && (
        <>
          <form className="fields" onSubmit={submit}>
            <div className="field">
              <label htmlFor="key">API key</label>
              <input id="key" name="key" type="password" autoComplete="off" required placeholder="rk_…" />
              <span className="soft">
                It is exchanged for a cookie that expires after 12 hours, or with the key. The browser does not store
                the key.
              </span>
            </div>
            <p>
              <button type="submit" className="primary">
                Sign in
              </button>
            </p>
          </form>
          <p className="soft">
            Or run <code>rollcall view</code> on the command line: it prints a link that signs you in once.
          </p>
        </>
      )}
    </main>
  );
}
