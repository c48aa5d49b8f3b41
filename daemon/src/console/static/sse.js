// One stream of events while the tab is visible. Events carry ids only; what changed is read by
// loading the page's own address again. Silence for five seconds is shown as staleness.

import { reload } from "./fragment.js";
import { serverNow } from "./time.js";

const topics = document.body.dataset.topics;
const words = document.getElementById("live-state");
const banner = document.getElementById("stale");
let source = null;
let last = document.body.dataset.after;
let heard = performance.now();
let ended = "";
let timer = 0;

function clock() {
  return new Date(serverNow()).toISOString().slice(11, 19) + " UTC";
}

function say(text, stale) {
  if (words.textContent !== text) words.textContent = text;
  document.body.classList.toggle("is-stale", stale);
  banner.hidden = !stale;
  if (stale) banner.querySelector("p").textContent = text + ". What you see may have changed.";
}

function changed(event) {
  heard = performance.now();
  last = event.lastEventId || last;
  clearTimeout(timer);
  timer = setTimeout(reload, 50);
}

function open() {
  if (source || ended || document.hidden) return;
  source = new EventSource("/events?topics=" + encodeURIComponent(topics) + "&after=" + encodeURIComponent(last));
  heard = performance.now();
  for (const kind of ["inbox", "incident", "approval", "action", "health", "notice", "resync"]) {
    source.addEventListener(kind, changed);
  }
  source.addEventListener("hb", (event) => {
    heard = performance.now();
    last = event.lastEventId || last;
    say("Live", false);
  });
  source.addEventListener("bye", (event) => {
    stop("Not live: " + JSON.parse(event.data).kind + ". Reload the page");
  });
  source.onerror = () => {
    if (source && source.readyState === EventSource.CLOSED) close();
  };
}

function close() {
  if (source) source.close();
  source = null;
}

function stop(why) {
  ended = why;
  close();
  say(why, true);
}

function watch() {
  if (ended || document.hidden) return;
  const silent = Math.floor((performance.now() - heard) / 1000);
  if (silent >= 5) say("Stale " + silent + " s, as of " + clock(), true);
  if (!source) open();
}

document.addEventListener("sentinel-ended", () => stop("Your login has ended. Log in again"));
document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    close();
  } else {
    open();
    reload();
  }
});
document.querySelector("#fresh a").href = location.href;
open();
setInterval(watch, 1000);
