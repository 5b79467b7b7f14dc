// What the server tells of documents while it works on them, asked for again and again where events do not get through.

const PATIENCE_MS = 2000;
const POLL_MS = 3000;
const LOOK_MS = 10000;

/**
 * Keep a page current while it is being looked at: `reload` fetches everything anew (at the start, after every gap,
 * and at intervals while there are no events), `document` takes one that changed, `gone` the id of one
 * that was deleted, `queue` how much is waiting.
 */
export function follow({ reload, document: changed, gone, queue }) {
  let source;
  let timer;

  async function poll() {
    clearTimeout(timer);
    await reload();
    clearTimeout(timer);
    if (!document.hidden && source.readyState !== EventSource.OPEN) timer = setTimeout(poll, POLL_MS);
  }

  function begin() {
    source = new EventSource("/v1/documents/events");
    source.addEventListener("open", () => { clearTimeout(timer); reload(); });
    source.addEventListener("document", (event) => changed(JSON.parse(event.data)));
    source.addEventListener("gone", (event) => gone(JSON.parse(event.data).id));
    source.addEventListener("queue", (event) => queue?.(JSON.parse(event.data)));
    source.addEventListener("error", () => { if (source.readyState === EventSource.CLOSED) poll(); });
    // A proxy that holds events back holds back their beginning too.
    timer = setTimeout(poll, PATIENCE_MS);
  }

  function end() {
    clearTimeout(timer);
    source.close();
  }

  // A browser keeps few connections to one server: a tab in the background gives its own back.
  document.addEventListener("visibilitychange", () => (document.hidden ? end() : begin()));
  begin();
}

/**
 * Look again at intervals while the page is being looked at, and at once when it is again: for what people decide, which
 * takes minutes. A look that fails is made up for by the next one.
 */
export function lookAgain(look) {
  let timer;

  async function again() {
    clearTimeout(timer);
    await look().catch(() => {});
    clearTimeout(timer);
    if (!document.hidden) timer = setTimeout(again, LOOK_MS);
  }

  document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : again()));
  timer = setTimeout(again, LOOK_MS);
}
