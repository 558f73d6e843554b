import "./tokens.css";
import "./base.css";
import { render } from "preact";
import { App } from "./app";
import { keepFocus } from "./focus";
import { listenForKeys } from "./keys";
import { followSession } from "./live";
import { enter } from "./session";
import { followStatus } from "./status";

listenForKeys();
keepFocus();
followSession();
followStatus();
void enter();
const place = document.getElementById("app");
if (place) render(<App />, place);
