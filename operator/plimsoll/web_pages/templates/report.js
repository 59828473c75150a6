"use strict";
const explanations = JSON.parse(document.getElementById("explanations").textContent);
const dialog = document.querySelector("dialog");

// Explanations open in a dialog; text only, whatever a cluster calls its objects.
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-of]");
  if (!button) return;
  const name = button.dataset.of;
  dialog.querySelector("h2").textContent = name;
  dialog.querySelector("pre").textContent = Object.hasOwn(explanations, name) ? explanations[name] : button.title;
  dialog.showModal();
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
document.querySelector("header").append(tools);
search.addEventListener("input", () => {
  const wanted = search.value.trim().toLowerCase();
  let found = 0;
  for (const each of document.querySelectorAll("tbody tr, .names li")) {
    each.hidden = wanted !== "" && !each.textContent.toLowerCase().includes(wanted);
    if (!each.hidden) found += 1;
  }
  for (const tile of document.querySelectorAll(".tile")) {
    const marked = wanted !== "" && tile.dataset.of.toLowerCase().includes(wanted);
    tile.classList.toggle("found", marked);
  }
  count.textContent = wanted ? `${found} found` : "";
});
