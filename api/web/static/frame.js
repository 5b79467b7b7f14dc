// What every page has: the language switch and logging out.

import { call } from "./api.js";
import { find, notice } from "./dom.js";

find("#switch-language").addEventListener("click", () => {
  const other = document.documentElement.lang.startsWith("zh") ? "en" : "zh";
  document.cookie = `lang=${other}; path=/; max-age=31536000; SameSite=Strict`;
  location.reload();
});

find("#log-out")?.addEventListener("click", async () => {
  try {
    await call("/v1/logout", { method: "POST" });
    location.assign("/login");
  } catch (error) { notice(error.message); }
});
