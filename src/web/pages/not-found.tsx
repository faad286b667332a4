import { Link, useLocation } from "@tanstack/react-router";
import { Shown } from "../components/shown.tsx";
import { useDocumentTitle } from "../layout/title.ts";

export function NotFound() {
  const { pathname } = useLocation();
  useDocumentTitle("Not found");
  return (
    <main className="narrow">
      <h1>There is nothing here</h1>
      <p>
        No page has the address{" "}
        <code>
          <Shown text={pathname} />
        </code>
        .
      </p>
      <p>
        <Link to="/" search={{}}>
          Go to the runs
        </Link>
      </p>
    </main>
  );
}
