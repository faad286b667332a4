/** Light or dark: the system's setting, until the reader chooses. The stylesheet follows `color-scheme` of the root. */
import { useEffect, useState } from "react";

export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];
const STORED = "rollcall.theme";

function storedTheme(): Theme {
  return THEMES.find((one) => one === localStorage.getItem(STORED)) ?? "system";
}

/** Applies the chosen theme; called before the first page is drawn. */
export function showTheme(theme: Theme = storedTheme()): void {
  document.documentElement.style.colorScheme = theme === "system" ? "" : theme;
}

export function useTheme(): readonly [Theme, (theme: Theme) => void] {
  const [theme, setTheme] = useState(storedTheme);
  useEffect(() => {
    showTheme(theme);
    if (theme === "system") localStorage.removeItem(STORED);
    else localStorage.setItem(STORED, theme);
  }, [theme]);
  return [theme, setTheme];
}

/** Calls `run` whenever the theme changes, for content that is drawn on a canvas. */
export function onThemeChange(run: () => void): () => void {
  const system = matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", run);
  const chosen = new MutationObserver(run);
  chosen.observe(document.documentElement, { attributes: true, attributeFilter: ["style"] });
  return () => {
    system.removeEventListener("change", run);
    chosen.disconnect();
  };
}

/**
 * A colour of the stylesheet in the form that a canvas takes, `rgb(…)`, in the current theme. The variable itself holds
 * the colours of both themes; only a property of an element resolves it.
 */
export function colourOf(variable: string): string {
  const probe = document.createElement("i");
  probe.style.color = `var(${variable})`;
  document.documentElement.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
