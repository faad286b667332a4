/** The pages of the navigation, in its order, each with the key that opens it after `g`. */
export const SECTIONS = [
  { name: "Home", path: "/", key: "h" },
  { name: "Runs", path: "/runs", key: "r" },
  { name: "New run", path: "/runs/new", key: "n" },
  { name: "Compare", path: "/compare", key: "c" },
  { name: "Environments", path: "/environments", key: "e" },
  { name: "Datasets", path: "/datasets", key: "d" },
  { name: "Endpoints", path: "/endpoints", key: "p" },
  { name: "Fleets", path: "/fleets", key: "f" },
  { name: "Triggers", path: "/triggers", key: "t" },
  { name: "Webhooks", path: "/webhooks", key: "w" },
  { name: "Keys", path: "/keys", key: "k" },
  { name: "Usage", path: "/usage", key: "u" },
] as const;
