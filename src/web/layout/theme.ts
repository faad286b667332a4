/** Light or dark: as the system has it, until the reader chooses. The stylesheet follows `color-scheme` of the root. */
import { useEffect, useState } from "react";

export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];
const STORED = "rollcall.theme";

function storedTheme(): Theme {
  return THEMES.find((one) => one === localStorage.getItem(STORED)) ?? "system";
}

/** As it was chosen, on any page and before the first is drawn. */
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

/** Calls whenever light becomes dark or the other way round, for what is drawn and not styled. */
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
 * A colour of the stylesheet as a canvas takes it, `rgb(…)`, as it is at this moment: the variable itself holds both,
 * and only a property of an element says which one counts.
 */
export function colourOf(variable: string): string {
  const probe = document.createElement("i");
  probe.style.color = `var(${variable})`;
  document.documentElement.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
