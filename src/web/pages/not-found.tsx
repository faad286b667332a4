import { Link, useLocation } from "@tanstack/react-router";
import { Shown } from "../components/shown.tsx";
import { useDocumentTitle } from "../layout/title.ts";

export function NotFound() {
  const { pathname } = useLocation();
  useDocumentTitle("Not found");
  return (
    <main className="narrow">
      <h1>Page not found</h1>
      <p>
        There is no page at{" "}
        <code>
          <Shown text={pathname} />
        </code>
        .
      </p>
      <p>
        <Link to="/" search={{}}>
          Go to the first page
        </Link>
      </p>
    </main>
  );
}
