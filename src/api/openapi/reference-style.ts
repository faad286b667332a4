/** The look of the reference page: the reader's own fonts, and their choice of light or dark. */
export const STYLE = `
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --quiet: #6b7280; --link: #2563eb; }
@media (prefers-color-scheme: dark) { :root { --quiet: #9ca3af; --link: #7aa7ff; } }
* { box-sizing: border-box; }
body { margin: 0; font: 16px/1.5 system-ui, sans-serif; }
a { color: var(--link); text-decoration: none; }
a:hover { text-decoration: underline; }
code, pre { font: 0.875em/1.5 ui-monospace, monospace; }
pre { overflow: auto; max-height: 28rem; margin: 0.5rem 0 1rem; padding: 0.75rem 1rem; background: var(--soft); border-radius: 6px; }
code { overflow-wrap: anywhere; }
pre code { overflow-wrap: normal; }
td code { overflow-wrap: break-word; }
nav { padding: 1.5rem; border-bottom: 1px solid var(--line); font-size: 0.875rem; }
nav ul { list-style: none; margin: 0 0 1rem; padding: 0; }
nav li { margin: 0.15rem 0; padding-left: 3.4rem; text-indent: -3.4rem; }
nav .method { text-indent: 0; }
nav strong { text-transform: capitalize; }
main { max-width: 60rem; padding: 1.5rem; }
h1 { margin: 0 0 0.5rem; }
h2 { margin: 3rem 0 0.5rem; padding-top: 1rem; border-top: 1px solid var(--line); text-transform: capitalize; }
h3 { margin: 2.5rem 0 0.25rem; font-size: 1.1rem; }
h4 { margin: 1.25rem 0 0.25rem; font-size: 0.95rem; }
.guide h2, .schemas h3 { text-transform: none; }
.table { overflow-x: auto; margin: 0.5rem 0 1rem; }
table { border-collapse: collapse; width: 100%; font-size: 0.875rem; }
th, td { padding: 0.3rem 0.75rem 0.3rem 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
td:first-child { white-space: nowrap; }
.quiet { color: var(--quiet); }
.method { display: inline-block; min-width: 4.2em; font: 700 0.75rem/1.5 ui-monospace, monospace; }
.get { color: #0a7d33; } .post { color: #2563eb; } .patch { color: #a15c00; } .delete { color: #c0262d; }
@media (prefers-color-scheme: dark) { .get { color: #4ade80; } .post { color: #7aa7ff; } .patch { color: #fbbf24; } .delete { color: #f87171; } }
details summary { cursor: pointer; }
@media (min-width: 64rem) {
  body { display: grid; grid-template-columns: 18rem minmax(0, 1fr); }
  nav { position: sticky; top: 0; height: 100vh; overflow: auto; border-bottom: 0; border-right: 1px solid var(--line); }
  main { padding: 1.5rem 3rem; }
}
`;
