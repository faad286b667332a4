/** Light or dark: as the system has it, until the reader chooses. */
import { useEffect, useState } from "react";

export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];
const STORED = "rollcall.theme";

export function useTheme(): readonly [Theme, (theme: Theme) => void] {
  const [theme, setTheme] = useState<Theme>(() => {
    return THEMES.find((one) => one === localStorage.getItem(STORED)) ?? "system";
  });
  useEffect(() => {
    if (theme === "system") {
      delete document.documentElement.dataset["theme"];
      localStorage.removeItem(STORED);
    } else {
      document.documentElement.dataset["theme"] = theme;
      localStorage.setItem(STORED, theme);
    }
  }, [theme]);
  return [theme, setTheme];
}
