/** The screens, in the order of the navigation: a line here is all it takes to have one. */

import type { Schemas } from "./api";
import { lazy, type LazyScreen } from "./parts/lazy";

/** What is counted for the navigation; undefined until it is known. */
export interface Numbers {
  status: Schemas["StatusReport"] | null;
  users: number | undefined;
  projects: number | undefined;
  branches: number | undefined;
}

export interface Screen {
  /** Where it is, after `/console`; it may hold parameters, as `/memories/:id`. */
  path: string;
  title: string;
  /** Second key after `g`; without one it is not in the navigation. */
  key?: string;
  /** 1 what is done daily, 2 what one asks, 3 what one looks after. */
  group: 1 | 2 | 3;
  /** Loaded when it is first shown. */
  component: LazyScreen;
  /** Whether it is for the owner alone; a reviewer does not see it. */
  owner?: boolean;
  /** A number beside its name. */
  count?: (numbers: Numbers) => number | undefined;
}

export const screens: readonly Screen[] = [
  {
    path: "/",
    title: "Home",
    key: "h",
    group: 1,
    component: lazy("Home", () => import("./screens/Home").then((code) => code.Home)),
  },
  {
    path: "/review",
    title: "Review",
    key: "r",
    group: 1,
    component: lazy("Review", () => import("./screens/Review").then((code) => code.Review)),
    count: ({ status }) => status?.quarantine.depth,
  },
  {
    path: "/memories",
    title: "Memories",
    key: "m",
    group: 1,
    component: lazy("Memories", () => import("./screens/Memories").then((code) => code.Memories)),
    count: ({ status }) => status?.live,
  },
  {
    path: "/memories/:id",
    title: "Memory",
    group: 1,
    component: lazy("Memory", () => import("./screens/Memory").then((code) => code.Memory)),
  },
  {
    path: "/users",
    title: "Users",
    key: "u",
    group: 1,
    component: lazy("Users", () => import("./screens/People").then((code) => code.Users)),
    count: ({ users }) => users,
  },
  {
    path: "/projects",
    title: "Projects",
    key: "p",
    group: 1,
    component: lazy("Projects", () => import("./screens/People").then((code) => code.Projects)),
    count: ({ projects }) => projects,
  },
  {
    path: "/about",
    title: "About",
    group: 1,
    component: lazy("About", () => import("./screens/About").then((code) => code.About)),
  },
  {
    path: "/core",
    title: "Core",
    key: "c",
    group: 1,
    component: lazy("Core", () => import("./screens/Core").then((code) => code.Core)),
  },
  {
    path: "/commits",
    title: "Commits",
    key: "o",
    group: 2,
    component: lazy("Commits", () => import("./screens/Commits").then((code) => code.Commits)),
  },
  {
    path: "/branches",
    title: "Branches",
    key: "b",
    group: 2,
    component: lazy("Branches", () => import("./screens/Branches").then((code) => code.Branches)),
    count: ({ branches }) => branches,
  },
  {
    path: "/context",
    title: "Context lab",
    key: "x",
    group: 2,
    component: lazy("Context lab", () => import("./screens/ContextLab").then((code) => code.ContextLab)),
  },
  {
    path: "/recall",
    title: "Recall lab",
    key: "l",
    group: 2,
    component: lazy("Recall lab", () => import("./screens/RecallLab").then((code) => code.RecallLab)),
  },
  {
    path: "/activity",
    title: "Activity",
    key: "t",
    group: 2,
    component: lazy("Activity", () => import("./screens/Activity").then((code) => code.Activity)),
  },
  {
    path: "/sources",
    title: "Sources",
    key: "s",
    group: 3,
    component: lazy("Sources", () => import("./screens/Sources").then((code) => code.Sources)),
  },
  {
    path: "/erase",
    title: "Erase",
    key: "e",
    group: 3,
    component: lazy("Erase", () => import("./screens/Erase").then((code) => code.Erase)),
    owner: true,
  },
  {
    path: "/jobs",
    title: "Jobs",
    key: "j",
    group: 3,
    component: lazy("Jobs", () => import("./screens/Jobs").then((code) => code.Jobs)),
  },
  {
    path: "/tokens",
    title: "Tokens",
    key: "k",
    group: 3,
    component: lazy("Tokens", () => import("./screens/Tokens").then((code) => code.Tokens)),
    owner: true,
  },
  {
    path: "/integrity",
    title: "Integrity",
    key: "i",
    group: 3,
    component: lazy("Integrity", () => import("./screens/Integrity").then((code) => code.Integrity)),
  },
  {
    path: "/settings",
    title: "Settings",
    key: ",",
    group: 3,
    component: lazy("Settings", () => import("./screens/Settings").then((code) => code.Settings)),
    owner: true,
  },
];

/** Return the screen that an address within the console names. */
export function screenAt(path: string): Screen | undefined {
  const parts = path.split("/");
  return screens.find((screen) => {
    const named = screen.path.split("/");
    return named.length === parts.length && named.every((name, index) => name.startsWith(":") || name === parts[index]);
  });
}
