"use strict";
// What the page can do beyond being read: age, sorting, filtering, and unfolding for the printer.
const made = Date.parse(document.getElementById("made").dateTime);
const until = Date.parse(document.getElementById("until")?.dateTime);
const verdict = document.getElementById("verdict");
const [said, title] = [verdict.textContent, document.title];

// As mirror-report show: the age is part of the verdict; a report that is too old says nothing any more, but for what it proved lost.
function age() {
  const minutes = Math.max(0, Math.floor((Date.now() - made) / 60000));
  const ago = minutes < 120 ? minutes + " min" : minutes < 2880 ? Math.floor(minutes / 60) + " h"
    : Math.floor(minutes / 1440) + " d";
  const old = Date.now() > until;
  const before = old && !verdict.classList.contains("critical") ? "unknown: this report is too old; it said: " : "";
  if (before) verdict.className = "verdict unknown";
  verdict.firstElementChild.textContent = before + said + " (made " + ago + " ago" + (old && !before ? ", too old)" : ")");
  document.title = before + title;
}
age();
setInterval(age, 60000);

// Unknown comes last, whichever way a column is sorted.
function compare(a, b, sign) {
  if (a === b) return 0;
  if (a === "" || b === "") return a === "" ? 1 : -1;
  const [x, y] = [Number(a), Number(b)];
  return sign * (Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b, "en", { numeric: true }) : x - y);
}

function sort(table, head) {
  const sign = head.ariaSort === "ascending" ? -1 : 1;
  const column = head.cellIndex;
  const key = (row) => row.cells[column].dataset.v ?? row.cells[column].textContent;
  const rows = [...table.tBodies[0].rows].sort((a, b) => compare(key(a), key(b), sign));
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  head.ariaSort = sign > 0 ? "ascending" : "descending";
  table.tBodies[0].append(...rows);
}

for (const table of document.querySelectorAll("table.sortable")) {
  for (const head of table.tHead.rows[0].cells) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    button.addEventListener("click", () => sort(table, head));
    head.append(button);
  }
}

const tools = document.getElementById("tools");
const all = [...document.querySelectorAll("tbody tr, .finding")];
if (all.length) {
  const text = document.createElement("input");
  const calm = document.createElement("input");
  const told = document.createElement("output");
  text.type = "search";
  text.id = "filter";
  text.placeholder = "filter rows, such as a topic";
  text.setAttribute("aria-label", "Filter rows");
  calm.type = "checkbox";
  calm.id = "calm";
  const label = document.createElement("label");
  label.append(calm, " only what needs attention");
  const isCalm = (one) => one.matches(".accounted") || one.querySelector("[data-state=ok], [data-state=dim]") !== null;
  const filter = () => {
    const wanted = text.value.trim().toLowerCase();
    let shown = 0;
    for (const one of all) {
      one.hidden = !one.textContent.toLowerCase().includes(wanted) || (calm.checked && isCalm(one));
      if (!one.hidden) shown += 1;
    }
    told.value = shown === all.length ? "" : shown + " of " + all.length + " shown";
  };
  text.addEventListener("input", filter);
  calm.addEventListener("change", filter);
  tools.append(text, label, told);
}

window.addEventListener("beforeprint", () => {
  for (const one of document.querySelectorAll("details")) one.open = true;
});
