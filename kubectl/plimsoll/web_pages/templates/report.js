"use strict";
const { explanations, index } = JSON.parse(document.getElementById("data").textContent);
const dialog = document.querySelector("dialog");
const rows = new Map((index.pods || []).map((row) => [row[0], row]));

// What the page knows of a pod that has no text of its own: its row, and the texts that rows share.
function ofPod(name) {
  const [, node, shape, owner, budget] = rows.get(name);
  const lines = [`on node ${index.nodes[node]}`, index.shapes[shape]];
  lines.push(owner < 0 ? "no controller would replace it" : `owner: ${index.owners[owner]}`);
  lines.push(budget < 0 ? "no PodDisruptionBudget covers it" : index.budgets[budget]);
  if (owner >= 0) lines.push(...(index.stays[index.owners[owner]] || []));
  return `${lines.join("\n")}\n\nplimsoll explain pod ${name}`;
}

function podButton(name) {
  const place = document.createElement("li");
  const button = document.createElement("button");
  button.type = "button";
  button.dataset.of = name;
  button.textContent = name;
  place.append(button);
  return place;
}

function podsOn(node) {
  const number = (index.nodes || []).indexOf(node);
  return number < 0 ? [] : index.pods.filter((row) => row[1] === number).map((row) => row[0]);
}

for (const tile of document.querySelectorAll(".tile")) tile.title = tile.getAttribute("aria-label");

// Explanations open in a dialog; text only, whatever a cluster calls its objects.
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-of]");
  if (!button) return;
  const name = button.dataset.of;
  dialog.querySelector("h2").textContent = name;
  const known = Object.hasOwn(explanations, name) ? explanations[name] : "";
  dialog.querySelector("pre").textContent = known || (rows.has(name) ? ofPod(name) : button.title);
  dialog.querySelector(".names").replaceChildren(...podsOn(name).map(podButton));
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
});

// One map at a time, chosen by radio buttons; arrow keys go from tile to tile.
document.querySelectorAll(".maps").forEach((maps, number) => {
  const all = [...maps.querySelectorAll(".map")];
  const choice = document.createElement("fieldset");
  const legend = document.createElement("legend");
  legend.textContent = "Show";
  choice.append(legend);
  all.forEach((map, place) => {
    const label = document.createElement("label");
    const radio = document.createElement("input");
    radio.type = "radio";
    radio.name = `map-${number}`;
    radio.checked = place === 0;
    radio.addEventListener("change", () => all.forEach((each) => { each.hidden = each !== map; }));
    label.append(radio, ` ${map.dataset.map}`);
    choice.append(label);
    map.hidden = place !== 0;
  });
  maps.prepend(choice);
  maps.addEventListener("keydown", walkTiles);
});

// Tables sort by their headings, numbers as numbers.
const compare = new Intl.Collator("en", { numeric: true }).compare;
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0];
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = heading.textContent;
    heading.replaceChildren(button);
    button.addEventListener("click", () => {
      const falls = heading.getAttribute("aria-sort") === "ascending";
      for (const each of heading.parentNode.cells) each.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", falls ? "descending" : "ascending");
      const text = (row) => row.cells[column].textContent;
      const number = (row) => parseFloat(text(row).replace(/[^0-9.eE+-]/g, ""));
      const numeric = heading.classList.contains("number");
      const order = (a, b) => (numeric ? (number(a) || 0) - (number(b) || 0) : compare(text(a), text(b)));
      body.append(...[...body.rows].sort((a, b) => (falls ? order(b, a) : order(a, b))));
    });
  });
}

// One search for the page: rows and names without the text hide, tiles with it are marked.
const search = document.createElement("input");
search.type = "search";
search.id = "search";
const label = document.createElement("label");
label.htmlFor = "search";
label.textContent = "Search pods and nodes";
const count = document.createElement("span");
count.className = "quiet";
count.setAttribute("role", "status");
const tools = document.createElement("div");
tools.className = "tools";
tools.append(label, search, count);
const others = document.createElement("ul");
others.className = "names";
document.querySelector("header").append(tools, others);
const listed = new Set([...document.querySelectorAll("main [data-of]")].map((each) => each.dataset.of));
const MOST = 30; // pods that the search lists in addition to tables
search.addEventListener("input", () => {
  const wanted = search.value.trim().toLowerCase();
  let found = 0;
  for (const each of document.querySelectorAll("tbody tr, main .names li")) {
    each.hidden = wanted !== "" && !each.textContent.toLowerCase().includes(wanted);
    if (!each.hidden) found += 1;
  }
  for (const tile of document.querySelectorAll(".tile")) {
    const marked = wanted !== "" && tile.dataset.of.toLowerCase().includes(wanted);
    tile.classList.toggle("found", marked);
  }
  const more = wanted === "" ? [] : [...rows.keys()].filter((name) => !listed.has(name) && name.toLowerCase().includes(wanted));
  others.replaceChildren(...more.slice(0, MOST).map(podButton));
  found += more.length;
  if (more.length > MOST) others.append(`and ${more.length - MOST} more pods`);
  count.textContent = wanted ? `${found} found` : "";
});
