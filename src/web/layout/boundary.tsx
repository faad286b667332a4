/** Shows an error in place of a page that fails; the navigation stays. */
import { Component, type ReactNode } from "react";
import { ErrorNote } from "../components/error-note.tsx";

interface State {
  readonly error: unknown;
}

export class PageBoundary extends Component<{ readonly children: ReactNode }, State> {
  override readonly state: State = { error: null };

  static getDerivedStateFromError(error: unknown): State {
    return { error };
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (error === null) return this.props.children;
    return (
      <main>
        <h1>This page failed</h1>
        <ErrorNote error={error} onRetry={() => this.setState({ error: null })} />
      </main>
    );
  }
}
