/** The screens, in the order of the navigation: a line here is all it takes to have one. */

import type { ComponentType } from "preact";
import type { Schemas } from "./api";
import { Core } from "./screens/Core";
import { ContextLab } from "./screens/ContextLab";
import { Home } from "./screens/Home";
import { RecallLab } from "./screens/RecallLab";
import { Review } from "./screens/Review";
import { About } from "./screens/About";
import { Activity } from "./screens/Activity";
import { Memories } from "./screens/Memories";
import { Memory } from "./screens/Memory";
import { Projects, Users } from "./screens/People";
import { Sources } from "./screens/Sources";
import { Commits } from "./screens/Commits";
import { Erase } from "./screens/Erase";
import { Jobs } from "./screens/Jobs";
import { Tokens } from "./screens/Tokens";
import { Integrity } from "./screens/Integrity";
import { Settings } from "./screens/Settings";

/** What is counted for the navigation; undefined until it is known. */
export interface Numbers {
  status: Schemas["Status"] | null;
  users: number | undefined;
  projects: number | undefined;
}

export interface Screen {
  /** Where it is, after `/console`; it may hold parameters, as `/memories/:id`. */
  path: string;
  title: string;
  /** Second key after `g`; without one it is not in the navigation. */
  key?: string;
  /** 1 what is done daily, 2 what one asks, 3 what one looks after. */
  group: 1 | 2 | 3;
  component: ComponentType;
  /** Whether it is for the owner alone; a reviewer does not see it. */
  owner?: boolean;
  /** A number beside its name. */
  count?: (numbers: Numbers) => number | undefined;
}

export const screens: readonly Screen[] = [
  { path: "/", title: "Home", key: "h", group: 1, component: Home },
  {
    path: "/review",
    title: "Review",
    key: "r",
    group: 1,
    component: Review,
    count: ({ status }) => status?.quarantine.depth,
  },
  {
    path: "/memories",
    title: "Memories",
    key: "m",
    group: 1,
    component: Memories,
    count: ({ status }) => status?.live,
  },
  { path: "/memories/:id", title: "Memory", group: 1, component: Memory },
  { path: "/users", title: "Users", key: "u", group: 1, component: Users, count: ({ users }) => users },
  { path: "/projects", title: "Projects", key: "p", group: 1, component: Projects, count: ({ projects }) => projects },
  { path: "/about", title: "About", group: 1, component: About },
  { path: "/core", title: "Core", key: "c", group: 1, component: Core },
  { path: "/commits", title: "Commits", key: "o", group: 2, component: Commits },
  { path: "/context", title: "Context lab", key: "x", group: 2, component: ContextLab },
  { path: "/recall", title: "Recall lab", key: "l", group: 2, component: RecallLab },
  { path: "/activity", title: "Activity", key: "t", group: 2, component: Activity },
  { path: "/sources", title: "Sources", key: "s", group: 3, component: Sources },
  { path: "/erase", title: "Erase", key: "e", group: 3, component: Erase, owner: true },
  { path: "/jobs", title: "Jobs", key: "j", group: 3, component: Jobs },
  { path: "/tokens", title: "Tokens", key: "k", group: 3, component: Tokens, owner: true },
  { path: "/integrity", title: "Integrity", key: "i", group: 3, component: Integrity },
  { path: "/settings", title: "Settings", key: ",", group: 3, component: Settings, owner: true },
];
