// Keeps the page up to date: the server says when something has changed, and the page is fetched again and compared.
"use strict";

(() => {
  const feed = document.body.dataset.feed;
  const status = document.getElementById("live");
  if (!status) return;

  const AT_MOST = 1500; // milliseconds between two updates
  const AT_LEAST = 30000; // ... even if nothing is heard: "closes in ..." goes on
  const WITHOUT_EVENTS = 10000; // ... if events do not come through at all
  const AGAIN = 60000; // ... until they are tried again
  const PATIENCE = 8000; // milliseconds in which a page must come
  // Not location.href: an address may hold a name and password, which fetch refuses.
  const here = location.origin + location.pathname + location.search;

  let events = null;
  let failures = 0;
  let paused = false;
  let busy = false;
  let live = false; // whether events come
  let tried = 0; // when they were last asked for
  let lost = false; // whether the events broke off, and no page has come since
  let down = false; // whether the last page that was asked for did not come
  let last = Date.now(); // when the page that is shown came
  let due = 0;
  let tag = ""; // of the page as it is shown

  const text = document.createElement("span");
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Pause";
  button.addEventListener("click", () => {
    paused = !paused;
    button.textContent = paused ? "Resume" : "Pause";
    paused ? close() : open();
    show();
    if (!paused) soon(0);
  });
  status.append(text, button);

  function show() {
    const old = lost || down;
    const fresh = live ? "Live" : "Up to date";
    const word = paused ? "Paused" : old ? `No connection: as of ${new Date(last).toLocaleTimeString()}` : fresh;
    if (text.textContent !== word) text.textContent = word;
    status.classList.toggle("on", !old && !paused);
    document.getElementById("main").classList.toggle("old", old);
  }

  // Make `old` like `fresh` with as little change as can be: what has the focus keeps it, what is open stays open.
  function morph(old, fresh) {
    if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName) {
      old.replaceWith(document.importNode(fresh, true));
      return;
    }
    if (old.nodeType !== Node.ELEMENT_NODE) {
      if (old.data !== fresh.data) old.data = fresh.data;
      return;
    }
    for (const { name, value } of fresh.attributes) {
      if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    }
    for (const { name } of [...old.attributes]) {
      if (!fresh.hasAttribute(name) && !(old.nodeName === "DETAILS" && name === "open")) old.removeAttribute(name);
    }
    if (old.classList.contains("plot") && old.querySelector(".uplot")) return; // drawn anew from its table
    const now = [...old.childNodes];
    const then = [...fresh.childNodes];
    then.forEach((child, place) => {
      place < now.length ? morph(now[place], child) : old.append(document.importNode(child, true));
    });
    now.slice(then.length).forEach((child) => child.remove());
  }

  async function update() {
    due = 0;
    if (busy || paused || document.hidden) return;
    busy = true;
    try {
      const headers = { Accept: "text/html", "If-None-Match": tag };
      const answer = await fetch(here, { headers, cache: "no-store", signal: AbortSignal.timeout(PATIENCE) });
      if (!answer.ok && answer.status !== 304) throw new Error(String(answer.status));
      const html = answer.status === 304 ? "" : await answer.text(); // 304: what is shown is what there is
      const fresh = html && new DOMParser().parseFromString(html, "text/html").getElementById("main");
      if (!paused && fresh) {
        tag = answer.headers.get("ETag") || "";
        morph(document.getElementById("main"), fresh);
        hubbubCharts.all();
      }
      last = Date.now();
      if (down || (!events && last - tried > AGAIN)) {
        close(); // the browser would wait longer and longer to try again, and in the end no more
        failures = 0;
        open();
      }
      lost = down = false;
    } catch {
      down = true;
    } finally {
      busy = false;
      show();
    }
  }

  function soon(wait) {
    if (!due) due = setTimeout(update, Math.max(wait, last + AT_MOST - Date.now()));
  }

  function open() {
    if (!feed || events || paused || document.hidden || failures > 3 || !("EventSource" in window)) return;
    tried = Date.now();
    events = new EventSource(location.origin + feed);
    events.onopen = () => {
      live = true;
      failures = 0;
      show();
      soon(0);
    };
    for (const kind of ["release", "ask", "counts", "alarm"]) events.addEventListener(kind, () => soon(0));
    events.onerror = () => {
      failures += 1;
      lost = lost || live;
      live = false;
      if (failures > 3 || events.readyState === EventSource.CLOSED) {
        close();
        failures = Math.max(failures, 4); // from now on by asking
      }
      show();
      soon(0);
    };
  }

  function close() {
    if (events) events.close();
    events = null;
    live = false;
  }

  // A browser allows few connections to one server: a page that nobody sees holds none.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) close();
    else {
      failures = 0;
      open();
      soon(0);
    }
  });
  setInterval(() => {
    if (lost || down || Date.now() - last > (events ? AT_LEAST : WITHOUT_EVENTS)) soon(0);
  }, 1000);
  open();
  show();
})();
