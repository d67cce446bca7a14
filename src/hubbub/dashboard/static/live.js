// Keeps the page up to date: the server says when something has changed, and the page is fetched again and compared.
"use strict";

(() => {
  const feed = document.body.dataset.feed;
  const status = document.getElementById("live");
  if (!status) return;

  const AT_MOST = 1500; // milliseconds between two updates
  const AT_LEAST = 30000; // ... even if nothing is heard: "closes in ..." goes on
  const WITHOUT_EVENTS = 10000; // ... if events do not come through at all
  // Not location.href: an address may hold a name and password, which fetch refuses.
  const here = location.origin + location.pathname + location.search;

  let events = null;
  let failures = 0;
  let paused = false;
  let busy = false;
  let last = Date.now();
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
    if (!paused) soon(0);
  });
  status.append(text, button);

  function say(word, on) {
    if (text.textContent !== word) text.textContent = word;
    status.classList.toggle("on", on);
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
      const answer = await fetch(here, { headers: { Accept: "text/html", "If-None-Match": tag }, cache: "no-store" });
      if (!answer.ok && answer.status !== 304) throw new Error(String(answer.status));
      const html = answer.status === 304 ? "" : await answer.text(); // 304: what is shown is what there is
      const fresh = html && new DOMParser().parseFromString(html, "text/html").getElementById("main");
      if (!paused && fresh) {
        tag = answer.headers.get("ETag") || "";
        morph(document.getElementById("main"), fresh);
        hubbubCharts.all();
      }
      last = Date.now();
      say(events ? "Live" : "Up to date", true);
    } catch {
      say("No connection", false);
    } finally {
      busy = false;
    }
  }

  function soon(wait) {
    if (!due) due = setTimeout(update, Math.max(wait, last + AT_MOST - Date.now()));
  }

  function open() {
    if (!feed || events || paused || document.hidden || failures > 3 || !("EventSource" in window)) return;
    events = new EventSource(location.origin + feed);
    events.onopen = () => {
      failures = 0;
      say("Live", true);
      soon(0);
    };
    for (const kind of ["release", "ask", "counts", "alarm"]) events.addEventListener(kind, () => soon(0));
    events.onerror = () => {
      failures += 1;
      say("No connection", false);
      if (failures > 3 || events.readyState === EventSource.CLOSED) {
        close();
        failures = Math.max(failures, 4); // from now on by asking
      }
    };
  }

  function close() {
    if (events) events.close();
    events = null;
    say(paused ? "Paused" : "Up to date", false);
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
    if (Date.now() - last > (events ? AT_LEAST : WITHOUT_EVENTS)) soon(0);
  }, 1000);
  say("Up to date", true);
  open();
})();
