"use strict";
const byId = (id) => document.getElementById(id);
const status = byId("status");
const dialog = document.querySelector("dialog");
const nodes = new Map();
let token = sessionStorage.getItem("token") || "";
let current = 0; // which stream is the latest; older ones end

// Seconds as people write them: the two largest units.
class Duration {
  constructor(seconds) { this.seconds = seconds; }

  toString() {
    const units = [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]];
    let left = this.seconds;
    const parts = units.map(([unit, size]) => {
      const count = Math.floor(left / size);
      left -= count * size;
      return count ? `${count}${unit}` : "";
    });
    return parts.filter(Boolean).slice(0, 2).join("") || "0s";
  }
}

const counted = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

// What a cluster says is put in as text, never as markup.
function row(cells) {
  const line = document.createElement("tr");
  for (const [place, cell] of cells.entries()) {
    const field = line.insertCell();
    if (typeof cell === "number" || cell instanceof Duration) field.className = "number";
    else if (String(cell).length < 44 && !String(cell).includes(" ")) field.className = "whole";
    if (place === 0 && String(cell).includes("/")) {
      const button = document.createElement("button");
      button.type = "button";
      button.dataset.pod = cell;
      button.textContent = cell;
      field.append(button);
    } else {
      field.textContent = cell;
    }
  }
  return line;
}

function fill(id, lines, columns) {
  const none = document.createElement("tr");
  const cell = none.insertCell();
  cell.colSpan = columns;
  cell.textContent = "none";
  byId(id).replaceChildren(...(lines.length ? lines : [none]));
}

const step = (percent) => (percent > 100 ? 21 : percent > 0 ? Math.max(1, Math.round(percent / 5)) : 0);

function draw(node) {
  const known = nodes.get(node.node);
  const tile = known || document.createElement("button");
  if (!known) {
    tile.type = "button";
    tile.tabIndex = nodes.size ? -1 : 0;
    tile.dataset.node = node.node;
    tile.append(document.createElement("i"), document.createElement("i"), document.createElement("span"), document.createElement("span"));
    nodes.set(node.node, tile);
    const place = document.createElement("li");
    place.append(tile);
    byId("tiles").append(place);
  }
  const [cpu, memory, name, shares] = tile.children;
  name.textContent = node.node;
  shares.textContent = `${node.cpuPercent} %, ${node.memoryPercent} %`;
  cpu.className = `s${step(node.cpuPercent)}`;
  memory.className = `s${step(node.memoryPercent)}`;
  tile.className = node.isOpen ? "tile" : "tile closed";
  const closed = node.isOpen ? "" : ", closed to new pods";
  tile.title = `${node.node}: cpu ${node.cpuPercent} %, memory ${node.memoryPercent} %, ${counted(node.pods, "pod")}${closed}`;
  tile.setAttribute("aria-label", tile.title);
}

// Few nodes have their names and figures in their tiles.
const NAMED = 60;

// What a replica that does not lead cannot know, and where it is.
function standby(standing) {
  const leads = standing.startsWith("leading");
  const note = byId("standby");
  note.hidden = leads;
  for (const id of ["queue", "moves"]) {
    byId(id).hidden = !leads;
    document.querySelector(`nav a[href="#${id}"]`).parentNode.hidden = !leads;
  }
  if (leads) return;
  const leader = /standing by for (\S+)/.exec(standing);
  const where = leader ? ` The leader is ${leader[1]}; where that is a pod's name, kubectl port-forward pod/${leader[1].split("_")[0]} 8081 reaches its page.` : "";
  note.textContent = `This replica stands by: queue and moves under way are the leader's, and are not shown here.${where} This page follows by itself when this replica leads.`;
}

// A condition that is not as it should be.
const isTrouble = (condition) => condition.type !== "Paused" && ["Accepted", "Ready"].includes(condition.type) !== (condition.status === "True");

function marked(line, when) {
  line.classList.toggle("trouble", when);
  return line;
}

const cells = (each) => [each.pod, each.sourceNode, each.targetNode, each.phase, each.policy, each.strategy, each.message];

function show(view, isFirst) {
  const kept = new Set(view.nodes.map((each) => each.node));
  const gone = isFirst ? [...nodes.keys()].filter((name) => !kept.has(name)) : view.gone;
  for (const name of gone) {
    nodes.get(name)?.parentNode.remove();
    nodes.delete(name);
  }
  view.nodes.forEach(draw);
  if (nodes.size && !document.querySelector('.tile[tabindex="0"]')) nodes.values().next().value.tabIndex = 0;
  byId("tiles").classList.toggle("named", nodes.size <= NAMED);
  standby(view.standing);
  byId("depths").replaceChildren(...Object.entries(view.depths).map(([name, count]) => {
    const item = document.createElement("li");
    item.textContent = `${name}: ${count}`;
    return item;
  }));
  const waiting = Object.values(view.depths).reduce((sum, count) => sum + count, 0);
  byId("more").textContent = waiting > view.queue.length ? `The first ${view.queue.length} of ${waiting}.` : "";
  fill("waiting", view.queue.map((each) => row([each.pod, each.queue, each.attempts, new Duration(each.waitedSeconds), each.rejectedBy.join(", ")])), 5);
  fill("conditions", view.policies.flatMap((policy) => policy.conditions.map((each) => marked(row([policy.policy, each.type, each.status, each.reason, each.message]), isTrouble(each)))), 5);
  fill("open", view.moves.map((each) => row(cells(each))), 7);
  fill("ended", view.records.map((each) => row(cells(each))), 7);
  document.body.classList.remove("stale");
  const text = `${view.standing}; ${counted(view.nodeCount, "node")}, ${counted(view.podCount, "pod")} with a node`;
  if (status.textContent !== text) status.textContent = text;
}

const headers = () => ({ Authorization: `Bearer ${token}` });

// A stream ends after some seconds and is asked for again: so the page outlives a fail-over.
async function listen(mine) {
  const answer = await fetch("/explain/live", { headers: headers(), cache: "no-store" });
  if (answer.status === 401 || answer.status === 403) {
    token = "";
    sessionStorage.removeItem("token");
    byId("ask").hidden = false;
    throw new Error(await answer.text());
  }
  if (!answer.ok) throw new Error(await answer.text());
  byId("ask").hidden = true;
  sessionStorage.setItem("token", token);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  let isFirst = true;
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    if (mine !== current) return void reader.cancel();
    text += value;
    const events = text.split("\n\n");
    text = events.pop();
    for (const event of events) {
      if (event.startsWith("data: ")) {
        show(JSON.parse(event.slice(6)), isFirst);
        isFirst = false;
      } else {
        status.textContent = "The operator is busy; what is shown is old.";
      }
    }
  }
}

async function follow() {
  const mine = ++current;
  while (mine === current && token) {
    try {
      await listen(mine);
    } catch (error) {
      document.body.classList.add("stale");
      status.textContent = `No answer, trying again: ${error.message.trim()}`;
      await new Promise((resolve) => { setTimeout(resolve, 2000); });
    }
  }
}

byId("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  token = byId("token").value.trim();
  byId("token").value = "";
  follow();
});

document.addEventListener("visibilitychange", () => {
  if (document.hidden) current += 1; // nobody looks
  else follow();
});

// An explanation is what the operator remembers of a pod or node.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-pod], [data-node]");
  if (!button) return;
  const isNode = button.dataset.node !== undefined;
  const name = isNode ? button.dataset.node : button.dataset.pod;
  dialog.querySelector("h2").textContent = name;
  const text = dialog.querySelector("pre");
  text.textContent = button.title || "";
  dialog.showModal();
  try {
    const path = name.split("/").map(encodeURIComponent).join("/");
    const answer = await fetch(`/explain/${isNode ? "nodes" : "pods"}/${path}`, { headers: headers() });
    const told = answer.ok ? lines(await answer.json(), "") : await answer.text();
    text.textContent = `${button.title || ""}\n\n${told}\n\nplimsoll explain ${isNode ? "node" : "pod"} ${name} says more.`.trim();
  } catch (error) {
    text.textContent = `No answer: ${error.message}`;
  }
});

function lines(value, indent) {
  return Object.entries(value).map(([name, each]) => {
    const words = name.replace(/([A-Z])/g, (letter) => ` ${letter.toLowerCase()}`);
    if (each === null || each === "" || (Array.isArray(each) && !each.length)) return `${indent}${words}: none`;
    if (typeof each === "object") return `${indent}${words}:\n${lines(each, `${indent}  `)}`;
    return `${indent}${words}: ${each}`;
  }).join("\n");
}

byId("tiles").addEventListener("keydown", walkTiles);

if (token) follow();
