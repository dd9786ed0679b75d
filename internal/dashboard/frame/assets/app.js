// Pages work without this. It refreshes what changes, copies, keeps a theme, and takes keys.
const root = document.documentElement;
const byId = (id) => document.getElementById(id);
const make = (name, more, ...content) => { const e = Object.assign(document.createElement(name), more); e.append(...content); return e };
const main = byId("main");
const kept = {
  get(name) { try { return localStorage.getItem(name) } catch { return null } },
  set(name, value) { try { localStorage.setItem(name, value) } catch { /* private windows */ } },
};

// Refresh: the page is asked for anew while somebody looks, and only what is different is replaced. A region in which somebody
// types, selects or has the focus stays as it is.
let tag = null, failing = 0, timer = 0, paused = false, seen = new Date();
const was = new Map(); // what a region was when it came, by its id
const again = Number(main?.dataset.again || 0) * 1000;

function inUse(region) {
  if (region.contains(document.activeElement)) return true;
  const selection = document.getSelection();
  return Boolean(selection && !selection.isCollapsed && selection.containsNode(region, true));
}

function replace(region, fresh) {
  const details = [...region.querySelectorAll("details[id]")];
  const scrolled = [...region.querySelectorAll(".scroll, pre")].map((e) => [e.scrollLeft, e.scrollTop]);
  region.replaceWith(fresh);
  for (const { id, open } of details) byId(id)?.toggleAttribute("open", open);
  fresh.querySelectorAll(".scroll, pre").forEach((e, i) => { if (scrolled[i]) [e.scrollLeft, e.scrollTop] = scrolled[i] });
  ready(fresh);
}

async function refresh() {
  if (paused || document.hidden) return;
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html", ...(tag && { "If-None-Match": tag }) }, cache: "no-store", redirect: "manual" });
    if (answer.type === "opaqueredirect") { location.reload(); return }
    if (answer.status === 200) {
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      let all = true;
      for (const fresh of page.querySelectorAll("[data-live][id]")) {
        const region = byId(fresh.id);
        if (!region || was.get(fresh.id) === fresh.innerHTML) continue;
        if (inUse(region)) { all = false; continue }
        replace(region, document.adoptNode(fresh));
      }
      document.title = page.title;
      tag = all ? answer.headers.get("ETag") : null;
    }
    const gone = answer.status === 502 || answer.status === 504; // a proxy's words for it: no page of ours answers so
    say(answer.ok || answer.status === 304 ? "" : gone ? silent : `This page cannot be shown anew: the answer is ${answer.status}.`);
  } catch {
    say(silent);
  }
}

const silent = "There is no answer.";

// say tells, from the second time on, what is wrong and how old what is shown is, until nothing is wrong any more. A gateway that
// answers must not look as if it were gone: a restart would cost what it holds for a store that is away. Why it has no page to
// show stands in its answer.
function say(wrong) {
  let note = byId("stale");
  if (!wrong) {
    failing = 0;
    seen = new Date();
    note?.remove();
    return;
  }
  if (++failing < 2 || note?.dataset.wrong === wrong) return;
  if (!note) {
    note = make("p", { id: "stale", className: "alert warn" });
    note.setAttribute("role", "status");
    main.prepend(note);
  }
  note.dataset.wrong = wrong;
  note.replaceChildren(`${wrong} What you see is from ${seen.toISOString().slice(11, 19)} UTC or earlier.`);
  if (wrong !== silent) note.append(" ", make("a", { href: location.pathname + location.search }, "Load it to see why"));
}

function schedule() {
  clearTimeout(timer);
  if (!again) return;
  timer = setTimeout(async () => { await refresh(); schedule() }, again * Math.min(2 ** failing, 12));
}

// Copying works on plain HTTP too, where browsers have no clipboard for pages.
async function copy(text) {
  try { await navigator.clipboard.writeText(text); return true } catch { /* below */ }
  const area = make("textarea", { value: text, readOnly: true, className: "hidden" });
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
}

// ready makes a region of the page work: what needs the script is shown, and times say what they are here.
function ready(region) {
  for (const live of region.matches?.("[data-live]") ? [region] : document.querySelectorAll("[data-live][id]")) was.set(live.id, live.innerHTML);
  for (const button of region.querySelectorAll("[data-copy]")) button.hidden = false;
  for (const time of region.querySelectorAll("time[datetime]")) {
    time.title = time.title.split(" · ")[0] + " · here " + new Date(time.dateTime).toLocaleString();
  }
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest?.("[data-copy]");
  if (!button) return;
  const first = button.firstChild;
  first.textContent = (await copy(button.dataset.copy)) ? "Copied" : "Select it";
  button.focus();
  setTimeout(() => { first.textContent = "Copy" }, 1500);
});

// Theme: the server writes what was chosen into the page, so that nothing flashes.
const theme = byId("theme");
function showTheme() { theme.querySelector("span").textContent = root.dataset.theme || "system" }
if (theme) {
  theme.hidden = false;
  showTheme();
  theme.addEventListener("click", () => {
    const next = { "": "light", light: "dark", dark: "" }[root.dataset.theme || ""];
    if (next) root.dataset.theme = next; else delete root.dataset.theme;
    document.cookie = `hookonce_theme=${next}; Path=/; SameSite=Strict; Max-Age=${next ? 31536000 : 0}`;
    showTheme();
  });
}

// Keys: g and the letter of a page, / to find, ? for help. They can be turned off there.
let leading = 0;
function help() {
  let dialog = byId("keys");
  if (!dialog) {
    const entries = [["/", "find an event"], ["p", "stop or go on refreshing"], ["?", "this"]];
    for (const a of document.querySelectorAll("[data-key]")) entries.push(["g " + a.dataset.key, a.textContent]);
    const list = entries.flatMap(([keys, text]) => [make("dt", {}, make("kbd", {}, keys)), make("dd", {}, text)]);
    const off = make("button", { type: "button" });
    const label = () => { off.textContent = kept.get("keys") === "off" ? "Turn them on" : "Turn them off" };
    off.onclick = () => { kept.set("keys", kept.get("keys") === "off" ? "on" : "off"); label() };
    label();
    const close = make("button", { type: "button", className: "primary", onclick: () => dialog.close() }, "Close");
    dialog = make("dialog", { id: "keys" }, make("h2", { id: "keys-title" }, "Keys"), make("dl", {}, ...list), make("p", { className: "buttons" }, close, off));
    dialog.setAttribute("aria-labelledby", "keys-title");
    document.body.append(dialog);
  }
  dialog.showModal();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog")) return;
  if (event.key === "?") { help(); return }
  if (kept.get("keys") === "off") return;
  if (leading && Date.now() - leading < 1500) {
    leading = 0;
    const link = [...document.querySelectorAll("[data-key]")].find((a) => a.dataset.key === event.key);
    if (link) { event.preventDefault(); link.click() }
  } else if (event.key === "g") {
    leading = Date.now();
  } else if (event.key === "/") {
    event.preventDefault();
    byId("find")?.focus();
  } else if (event.key === "p" && stop) {
    stop.click();
  } else if (event.key === "p" && again) {
    paused = !paused;
    document.title = (paused ? "‖ " : "") + document.title.replace(/^‖ /, "");
  }
});

// Tail: what comes is put on top.
const tail = document.querySelector("[data-tail]"), stop = byId("stop");
if (tail?.dataset.tail) {
  const rows = tail.tBodies[0], said = byId("said");
  const marks = { done: "✓", pending: "○", processing: "◐", failed: "▲", dead: "■" };
  const show = ({ data }) => {
    const e = JSON.parse(data), old = rows.querySelector(`[data-id="${e.id}"]`);
    if (old?.contains(document.activeElement)) return;
    const at = e.received_at, time = make("time", { dateTime: at, title: "UTC" }, at.slice(0, 19).replace("T", " "));
    const row = make("tr", {}, ...[
      ["nowrap", make("a", { href: "/events/" + e.id }, time, make("span", { className: "hidden" }, " event " + e.id))],
      ["", make("span", { className: "state " + e.state }, marks[e.state] + " " + e.state)],
      ["", e.source], ["text", e.type || ""], ["text", make("code", {}, e.key || "no key")],
      ["text", ...e.deliveries.map((d) => make("div", {}, `${d.destination}: ${d.state} ${d.last_error || ""}`))],
    ].map(([className, ...content]) => make("td", { className }, ...content)));
    row.dataset.id = e.id;
    if (old) old.replaceWith(row); else rows.prepend(row);
    rows.rows[200]?.remove();
    ready(row);
  };
  let source;
  const start = () => {
    const tell = (text) => () => { said.textContent = text };
    const well = tell("What comes is shown. Times are UTC."), lost = tell("No answer yet; nothing is lost.");
    const on = (name, f) => source.addEventListener(name, f);
    source = new EventSource(tail.dataset.tail);
    on("open", well);
    on("error", () => { lost(); if (source.readyState === 2) setTimeout(() => paused || start(), 5000) });
    on("event", show);
    on("state", show);
    on("left_out", ({ data }) => tell((JSON.parse(data).count || "Older") + " were left out.")());
    on("store_away", lost);
    on("store_back", well);
  };
  stop.hidden = false;
  stop.onclick = () => {
    source.close();
    if (paused = !paused) said.textContent = "Paused."; else start();
    stop.textContent = paused ? "Go on" : "Pause";
  };
  start();
}

document.addEventListener("visibilitychange", () => { if (!document.hidden && again && !paused) refresh() });
ready(document);
schedule();
