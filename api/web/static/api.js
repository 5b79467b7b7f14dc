// Calls to our own server, and nothing else.

import { say } from "./dom.js";

export class Problem extends Error {
  constructor(status, body) {
    super(body?.detail ?? body?.title ?? say("error_network"));
    this.status = status;
    this.code = body?.code;
  }
}

/** What a promise gives; a lost connection becomes a Problem, an abort stays one. */
async function reached(promise) {
  try {
    return await promise;
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, null);
  }
}

async function send(path, { method = "GET", body, headers = {}, signal } = {}) {
  const json = body && !(body instanceof FormData);
  const reply = await reached(fetch(path, {
    method, signal, credentials: "same-origin",
    // The header proves that the request comes from our own page.
    headers: { "X-Intramuros": "1", ...(json && { "Content-Type": "application/json" }), ...headers },
    body: json ? JSON.stringify(body) : body,
  }));
  if (reply.status === 401 && !location.pathname.startsWith("/login")) {
    location.assign(`/login?next=${encodeURIComponent(location.pathname + location.search)}`);
  }
  if (!reply.ok) throw new Problem(reply.status, await reply.json().catch(() => null));
  return reply;
}

export async function call(path, options) {
  const reply = await send(path, options);
  return reply.status === 204 ? null : reply.json();
}

/** Server-sent events of one POST, as {event, data}. Abort the signal to stop the model. */
export async function* events(path, body, signal) {
  const reply = await send(path, { method: "POST", body, signal, headers: { Accept: "text/event-stream" } });
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reached(reader.read());
    if (done) return;
    const blocks = (rest + value).replaceAll("\r\n", "\n").split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const fields = block.split("\n");
      const event = fields.find((line) => line.startsWith("event:"))?.slice(6).trim();
      const data = fields.filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trimStart()).join("\n");
      if (event && data) yield { event, data: JSON.parse(data) };
    }
  }
}
