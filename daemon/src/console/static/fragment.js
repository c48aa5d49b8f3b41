// Loads the page's own address again and exchanges the elements marked data-live, by id.
// The browser parses the answer as a document, so no text is ever turned into markup here.

import { refresh } from "./time.js";

let running = false;
let again = false;

function holdsFocus(element) {
  return element !== document.body && element.contains(document.activeElement);
}

// A list that grew must not move what is under the pointer or the focus (console 1.7): it waits
// behind the bar until the reader asks for it. Cells that only changed are exchanged in place.
function wouldMove(old, fresh) {
  if (holdsFocus(old)) return true;
  const rows = (element) => Array.from(element.querySelectorAll("[id^='row-']"), (row) => row.id).join(" ");
  return old.matches(":hover") && rows(old) !== rows(fresh);
}

function exchange(fresh) {
  let waiting = false;
  for (const old of document.querySelectorAll("[data-live]")) {
    const next = fresh.getElementById(old.id);
    if (!next || next.isEqualNode(old)) continue;
    if (wouldMove(old, next)) {
      waiting = true;
      continue;
    }
    old.replaceWith(document.importNode(next, true));
  }
  document.getElementById("fresh").hidden = !waiting;
  refresh();
}

export function reload() {
  if (running) {
    again = true;
    return;
  }
  running = true;
  const request = new XMLHttpRequest();
  request.open("GET", location.pathname + location.search);
  request.responseType = "document";
  request.timeout = 5000;
  request.setRequestHeader("Sentinel-Live", "1");
  request.onloadend = () => {
    running = false;
    if (request.status === 200 && request.responseURL.split("#")[0] === location.href.split("#")[0] && request.response) {
      exchange(request.response);
    } else if (request.status === 200 && request.response) {
      // The login has ended: the address led elsewhere. The reader keeps the page and is told.
      document.dispatchEvent(new CustomEvent("sentinel-ended"));
    }
    if (again) {
      again = false;
      reload();
    }
  };
  request.send();
}
