// Keeps the ages beside the absolute times true. The clock is the server's: its time at load is
// in the page, and only the time that passed since then is measured here (console 8.3).

const loaded = performance.now();
const serverAtLoad = Date.parse(document.body.dataset.now);

export function serverNow() {
  return serverAtLoad + (performance.now() - loaded);
}

function span(ms) {
  const seconds = Math.floor(ms / 1000);
  if (seconds < 120) return seconds + " s";
  if (seconds < 7200) return Math.floor(seconds / 60) + " min";
  if (seconds < 172800) return Math.floor(seconds / 3600) + " h";
  return Math.floor(seconds / 86400) + " d";
}

function relative(at) {
  const ms = serverNow() - at;
  if (Math.abs(ms) < 1000) return "now";
  return ms > 0 ? span(ms) + " ago" : "in " + span(-ms);
}

export function refresh() {
  for (const element of document.querySelectorAll("time[data-age]")) {
    const words = relative(Date.parse(element.dateTime));
    if (element.textContent !== words) element.textContent = words;
  }
}

if (Number.isFinite(serverAtLoad)) {
  refresh();
  setInterval(refresh, 1000);
}
