import "./tokens.css";
import "./base.css";
import { render } from "preact";
import { App } from "./app";
import { keepFocus } from "./focus";
import { listenForKeys } from "./keys";
import { followSession } from "./events";
import { BASE } from "./address";
import { screenAt } from "./screens";
import { enter } from "./session";
import { followStatus } from "./status";

// The code of the first screen loads while the session opens.
screenAt(location.pathname.slice(BASE.length) || "/")
  ?.component.preload()
  .catch(() => undefined);
listenForKeys();
keepFocus();
followSession();
followStatus();
void enter();
const place = document.getElementById("app");
if (place) render(<App />, place);
