/** The entry point of the page in the browser. */
import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { queryClient } from "./client.ts";
import { showTheme } from "./layout/theme.ts";
import { router } from "./router.tsx";
import "./styles/base.css";
import "./styles/layout.css";
import "./styles/components.css";

showTheme();
const root = document.getElementById("root");
if (root === null) throw new Error("the page has no element with the id root");
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
);
