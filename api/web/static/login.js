import { call } from "./api.js";
import { find, words } from "./dom.js";
import "./frame.js";

const form = find("#login");
const failure = find("#login-error");
const button = find("button[type=submit]", form);

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  failure.hidden = true;
  button.disabled = true;
  button.textContent = words.logging_in;
  const { name, password, tenant } = Object.fromEntries(new FormData(form));
  try {
    await call("/v1/login", { method: "POST", body: { name, password, ...(tenant && { tenant }) } });
    const next = new URLSearchParams(location.search).get("next") ?? "/";
    // Only an address of our own, so that a link cannot send someone elsewhere after logging in.
    const target = new URL(next, location.origin);
    location.assign(target.origin === location.origin ? target.pathname + target.search : "/");
  } catch (error) {
    failure.textContent = error.message;
    failure.hidden = false;
    find("#password").select();
    button.disabled = false;
    button.textContent = words.log_in;
  }
});
