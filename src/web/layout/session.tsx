/** The signed-in user. Pages that need no user (sign-in, a shared report) do not request it. */
import { useQuery } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext } from "react";
import { type Permission, permits } from "../../contract/identity.ts";
import { api, isSignedOut } from "../client.ts";
import { ErrorNote } from "../components/error-note.tsx";
import { Loading } from "../components/loading.tsx";
import { useDocumentTitle } from "./title.ts";

type Who = Awaited<ReturnType<typeof api.whoAmI>>;

const Session = createContext<Who | null>(null);

/** Shows `children` to a signed-in user, and a link to the sign-in page to others. */
export function SignedIn({ children }: { readonly children: ReactNode }) {
  const { data, error, refetch } = useQuery({
    queryKey: ["whoami"],
    queryFn: ({ signal }) => api.whoAmI({ signal }),
    staleTime: 60_000,
  });
  if (data !== undefined) return <Session value={data}>{children}</Session>;
  if (error === null) return <Loading what="your session" />;
  return isSignedOut(error) ? <SignInFirst /> : <ErrorNote error={error} onRetry={() => refetch()} />;
}

function SignInFirst() {
  useDocumentTitle("Sign in");
  const to = encodeURIComponent(location.pathname + location.search);
  return (
    <main className="narrow">
      <h1>Sign in</h1>
      <p>You are not signed in, or your session has ended.</p>
      <p>
        <a className="button" href={`/sign-in?to=${to}`}>
          Sign in
        </a>
      </p>
    </main>
  );
}

export function useSession(): Who {
  const who = useContext(Session);
  if (who === null) throw new Error("no page asks who is signed in outside of SignedIn");
  return who;
}

/** Whether a control is shown. The platform checks the permission as well. */
export function useMay(permission: Permission): boolean {
  return permits(useSession().scopes, permission);
}
