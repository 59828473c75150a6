"use strict";
const byId = (id) => document.getElementById(id);
const status = byId("status");
const dialog = document.querySelector("dialog");
const nodes = new Map();
let current = 0; // which stream is the latest; older ones end
let last = ""; // the event that was shown last: the next stream goes on from it

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

// An age in its largest unit, as kubectl has it.
const brief = (seconds) => {
  const [unit, size] = [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]].find(([, each]) => seconds >= 2 * each) || ["s", 1];
  return `${Math.floor(seconds / size)}${unit}`;
};

const counted = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

const element = (name, text, look) => {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (look) made.className = look;
  return made;
};

// In place of what is not there; on a phone the whole line is left out.
const NONE = "\u2013";

// Colour, shape and word say the same.
const chip = (word, look) => element("span", word, `chip ${look}`);

const LOOKS = { Settled: "good", Returned: "warn", Failed: "bad", Blocked: "warn", Cancelled: "", Predicted: "", Planned: "busy", Evicting: "busy", Evicted: "busy", Surging: "busy" };

let clock = Date.now(); // the operator's, when the view was taken

// A moment as an age, "now" or "in 4m"; the stamp itself is its title.
function moment(stamp) {
  const made = element("time", stamp ? "" : NONE);
  if (!stamp) return made;
  const seconds = Math.round((clock - Date.parse(stamp)) / 1000);
  made.dateTime = made.title = stamp;
  made.textContent = seconds < -1 ? `in ${brief(-seconds)}` : seconds < 2 ? "now" : `${brief(seconds)} ago`;
  return made;
}

function asked(kind, name) {
  const button = element("button", name);
  button.type = "button";
  button.dataset[kind] = name;
  return button;
}

// What a cluster says is put in as text, never as markup.
function row(body, cells) {
  const line = document.createElement("tr");
  const heads = byId(body).closest("table").tHead.rows[0].cells;
  for (const [place, cell] of cells.entries()) {
    const field = line.insertCell();
    field.dataset.label = heads[place].textContent;
    if (heads[place].className === "number") field.className = "number";
    field.append(...(Array.isArray(cell) ? cell : [cell instanceof Node ? cell : String(cell)]));
    field.classList.toggle("none", field.textContent === NONE);
  }
  return line;
}

function fill(id, lines, columns, empty) {
  const none = document.createElement("tr");
  const cell = none.insertCell();
  cell.colSpan = columns;
  cell.className = "empty";
  cell.textContent = empty;
  // A table that says the same is left alone, so that a selection or a focus in it stays.
  const next = lines.length ? lines : [none];
  const body = byId(id);
  const same = body.rows.length === next.length && next.every((line, place) => line.isEqualNode(body.rows[place]));
  if (!same) body.replaceChildren(...next);
}

const step = (percent) => (percent > 100 ? 21 : percent > 0 ? Math.max(1, Math.round(percent / 5)) : 0);

// Few nodes have their names and figures in their tiles.
const NAMED = 60;

// In a larger cluster zones begin folded, and their tiles are made when somebody opens them.
const UNFOLDED = 500;
let isLarge = false;

const sections = new Map(); // by zone: a search among elements for each of 5,000 nodes took 70 ms

// The section of a zone, made when its first node comes.
function group(zone) {
  const known = sections.get(zone);
  if (known) return known;
  const made = element("details", undefined, "zone");
  made.dataset.zone = zone;
  made.open = !isLarge;
  const summary = element("summary");
  summary.append(element("h3"));
  made.append(summary, element("ul", undefined, "tiles"));
  made.addEventListener("toggle", zones);
  const later = [...byId("zones").children].find((each) => each.dataset.zone > zone);
  byId("zones").insertBefore(made, later || null);
  sections.set(zone, made);
  return made;
}

function draw(node) {
  const known = nodes.get(node.node);
  node.tile = known && known.zone === node.zone ? known.tile : null;
  if (known && !node.tile) known.tile?.parentNode.remove();
  nodes.set(node.node, node);
  group(node.zone);
  if (node.tile) paint(node);
}

function tileOf(node, tiles) {
  const tile = document.createElement("button");
  tile.type = "button";
  tile.tabIndex = -1;
  tile.dataset.node = node.node;
  tile.append(element("i"), element("i"));
  const place = element("li");
  place.append(tile);
  const last = tiles.lastChild;
  const isLast = !last || last.firstChild.dataset.node < node.node;
  tiles.insertBefore(place, isLast ? null : [...tiles.children].find((each) => each.firstChild.dataset.node > node.node));
  return tile;
}

function paint(node) {
  const { tile } = node;
  const [cpu, memory] = tile.children;
  cpu.className = `s${step(node.cpuPercent)}`;
  memory.className = `s${step(node.memoryPercent)}`;
  tile.className = node.isOpen ? "tile" : "tile closed";
  const closed = node.isOpen ? "" : ", closed to new pods";
  const taints = node.taints.length ? `, taints ${node.taints.join(", ")}` : "";
  tile.title = `${node.node}: cpu ${node.cpuPercent} %, memory ${node.memoryPercent} %, ${counted(node.pods, "pod")}${closed}${taints}`;
}

// The heading of each zone; in an open one a tile for each node, of which Tab reaches one.
function zones() {
  const members = new Map();
  for (const node of nodes.values()) {
    if (!members.has(node.zone)) members.set(node.zone, []);
    members.get(node.zone).push(node);
  }
  for (const each of [...byId("zones").children]) {
    const held = members.get(each.dataset.zone);
    if (!held) {
      sections.delete(each.dataset.zone);
      each.remove(); // also the words for no node
      continue;
    }
    const mean = (figure) => Math.round(held.reduce((sum, node) => sum + node[figure], 0) / held.length);
    const title = each.dataset.zone ? `Zone ${each.dataset.zone}` : "No zone";
    const some = (count, what) => (count ? `, ${count} ${what}` : "");
    const closed = some(held.filter((node) => !node.isOpen).length, "closed");
    const full = some(held.filter((node) => Math.max(node.cpuPercent, node.memoryPercent) > 90).length, "above 90 %");
    each.querySelector("h3").replaceChildren(`${title} `, element("small", `${counted(held.length, "node")}, on average ${mean("cpuPercent")} % cpu and ${mean("memoryPercent")} % memory requested${full}${closed}`));
    if (!each.open) continue;
    held.sort((one, other) => (one.node < other.node ? -1 : 1));
    for (const node of held) {
      if (!node.tile) {
        node.tile = tileOf(node, each.lastChild);
        paint(node);
      }
    }
    const named = nodes.size <= NAMED;
    each.lastChild.classList.toggle("named", named);
    if (!held.some(({ tile }) => tile.tabIndex === 0)) held[0].tile.tabIndex = 0;
    for (const node of held) {
      const words = named ? [element("span", node.node), element("span", `${node.cpuPercent} % cpu, ${node.memoryPercent} %`)] : [];
      if (named || node.tile.children.length > 2) node.tile.replaceChildren(node.tile.children[0], node.tile.children[1], ...words);
    }
  }
}

// What a replica that does not lead cannot know, and where it is.
function standby(standing) {
  const leads = standing.startsWith("leading");
  const note = byId("standby");
  note.hidden = leads;
  byId("queue").hidden = !leads;
  document.querySelector('nav a[href="#queue"]').parentNode.hidden = !leads;
  if (leads) return;
  const leader = /standing by for (\S+)/.exec(standing);
  const where = leader ? ` The leader is ${leader[1]}; where that is a pod's name, kubectl port-forward pod/${leader[1].split("_")[0]} 8081 reaches its page.` : "";
  note.textContent = `This replica stands by: pending pods and moves under way are the leader's, and are not shown here.${where} This page follows by itself when this replica leads.`;
}

const condition = (policy, type, status) => policy.conditions.find((each) => each.type === type && each.status === status);

// A policy's state: chip and the sentence behind it.
function state(policy) {
  const refused = condition(policy, "Accepted", "False");
  const stopped = condition(policy, "Paused", "True");
  const unready = condition(policy, "Ready", "False");
  const degraded = condition(policy, "Degraded", "True");
  if (refused) return [chip("Not accepted", "bad"), refused.message];
  if (policy.isSuspended) return [chip("Suspended", "warn"), "spec.suspend is true"];
  if (stopped) return [chip("Stopped", "warn"), stopped.message];
  if (degraded) return [chip("Degraded", "bad"), degraded.message];
  if (unready) return [chip("Not ready", "bad"), unready.message];
  if (!policy.conditions.length) return [chip("Unseen", ""), "no operator has judged it yet"];
  return [chip("At work", "good"), ""];
}

function policyRow(policy) {
  const [shown, why] = state(policy);
  const held = policy.refused.slice(0, 3).map((each) => `${each.count} ${each.reason}`).join(", ");
  const more = policy.refused.length > 3 ? `, and ${policy.refused.length - 3} more reasons` : "";
  const stay = held && !policy.lastResult.includes("held back") ? `held back: ${held}${more}` : "";
  const said = [why, policy.lastResult, stay].filter(Boolean).join("; ");
  const name = element("strong", policy.policy);
  const serves = policy.scheduler ? ` schedules ${policy.scheduler}` : "";
  const cell = said || (policy.mode ? "has not run yet" : "places pods, moves none");
  return row("rows", [[name, element("small", serves, "quiet")], shown, policy.mode || NONE, moment(policy.lastRun), moment(policy.nextRun), policy.moved, policy.failed, cell]);
}

const DRAINS = { Drained: "good", Draining: "good", Blocked: "warn", Suspended: "warn", Stopped: "bad", Expired: "bad", Invalid: "bad" };

function maintenanceRow(each) {
  return row("maintenances", [element("strong", each.maintenance), chip(each.phase || "Unseen", DRAINS[each.phase] ?? ""), `${each.drained} of ${each.total}`, moment(each.expectedEnd), each.message]);
}

function moveRow(each) {
  const target = each.landedNode || each.targetNode;
  const way = element("span", target ? `${each.sourceNode} \u2192 ${target}` : each.sourceNode, "way");
  // The row has the target already, and its chip says that a move ended well.
  const isSaid = LOOKS[each.phase] === "good" || each.message === `expected on ${each.targetNode}`;
  const why = [each.why, isSaid ? "" : each.message].filter(Boolean).join("; ");
  return row("ended", [moment(each.time), asked("pod", each.pod), way, chip(each.phase, LOOKS[each.phase] ?? ""), why, `${each.policy}${each.strategy ? ` (${each.strategy})` : ""}`]);
}

let moves = []; // the rows' records, so that a filter needs no new view

function showMoves() {
  const wanted = byId("filter").value.trim().toLowerCase();
  const kept = moves.filter((each) => !wanted || [each.pod, each.sourceNode, each.targetNode, each.landedNode, each.policy, each.strategy, each.phase, each.why, each.message].join(" ").toLowerCase().includes(wanted));
  fill("ended", kept.map(moveRow), 6, wanted ? `None of ${counted(moves.length, "move")} matches. Clear the filter to see them.` : "Nothing has been moved yet. plimsoll plan shows what policies would move now, and why pods stay.");
}

// When moves ended: bars of a quarter of an hour each, below those that went well the others.
function hours(slots) {
  const sum = (figure) => slots.reduce((all, slot) => all + slot[figure], 0);
  const most = Math.max(0, ...slots.map((slot) => slot.settled + slot.failed));
  const said = most ? `${counted(sum("settled"), "move")} ended well, ${sum("failed")} did not, at most ${most} within a quarter of an hour; as far as their records are kept.` : "No move has ended in these hours, as far as records are kept.";
  byId("hours-said").textContent = said;
  byId("slots").setAttribute("aria-label", said);
  byId("slots").hidden = !most;
  const bars = slots.map((slot) => {
    const bar = element("span");
    const start = new Date(slot.start);
    const at = [start.getHours(), start.getMinutes()].map((each) => String(each).padStart(2, "0")).join(":");
    bar.title = `from ${at}: ${slot.settled} well, ${slot.failed} not`;
    bar.dataset.at = at.endsWith(":00") ? at : "";
    for (const [count, look] of [[slot.settled, "good"], [slot.failed, "bad"]]) {
      if (count) bar.append(element("i", undefined, `${look} h${Math.max(1, Math.round((20 * count) / most))}`));
    }
    return bar;
  });
  const shown = element("div");
  shown.append(...bars);
  if (shown.innerHTML !== byId("slots").innerHTML) byId("slots").replaceChildren(...bars);
}

const drawn = (name, attributes, text) => {
  const made = document.createElementNS(byId("bar").content.firstChild.namespaceURI, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
};

// The part of a rack's nodes that each group has: a colour and a letter, largest groups first, and the words beside.
function racks(view) {
  const sizes = new Map();
  for (const rack of view.racks) for (const one of rack.groups) sizes.set(one.group, (sizes.get(one.group) || 0) + one.members);
  const ranks = new Map([...sizes].sort(([, one], [, other]) => other - one).map(([name], rank) => [name, rank]));
  const letter = (name) => (ranks.get(name) < 26 ? String.fromCharCode(65 + ranks.get(name)) : "");
  byId("groups").hidden = !view.racks.length;
  document.querySelector('nav a[href="#groups"]').parentNode.hidden = !view.racks.length;
  byId("groups-said").textContent = `${counted(view.racks.length, "domain")} of ${view.rackCount} of label ${view.rackLabel} with members of groups. A bar has the part of the nodes that each group has, in its colour and with its letter; the rest has no group.`;
  const lines = view.racks.map((rack) => {
    const bar = byId("bar").content.firstChild.cloneNode(true);
    let start = 0;
    for (const one of rack.groups) {
      const width = (400 * one.nodes) / rack.nodes;
      bar.append(drawn("rect", { class: `g${Math.min(ranks.get(one.group), 7)}`, x: start, width, height: 18 }));
      if (width >= 14) bar.append(drawn("text", { x: start + width / 2, y: 13, "text-anchor": "middle" }, letter(one.group)));
      start += width;
    }
    const words = rack.groups.map((one) => `${letter(one.group)} ${one.group}: ${counted(one.members, "pod")}`.trim());
    const line = element("li");
    line.append(element("strong", rack.domain || "without the label"), bar, element("span", `${words.join(", ")}; ${rack.without} of ${counted(rack.nodes, "node")} without a group`));
    return line;
  });
  const shown = element("ul");
  shown.append(...lines);
  if (shown.innerHTML !== byId("racks").innerHTML) byId("racks").replaceChildren(...lines);
}

const TROUBLES = ["Degraded", "Not Ready", "Not Accepted"];

function changeRow(each) {
  const look = TROUBLES.includes(each.what) ? "bad" : each.what === "Paused" ? "warn" : ["Ready", "Accepted", "Not Degraded"].includes(each.what) ? "good" : "";
  return row("changes", [moment(each.time), each.policy, chip(each.what.replace("Not Paused", "Resumed"), look), each.message || NONE]);
}

// The answer in a line: is it well, how large is it, what waits, when was something moved last.
function health(view, waiting) {
  const leads = view.standing.startsWith("leading");
  const troubled = view.policies.filter((each) => state(each)[0].classList.contains("bad")).length;
  const paused = view.policies.map((each) => condition(each, "Paused", "True")).find(Boolean);
  const [word, look] = !leads ? ["Standby", ""] : troubled ? [`${troubled === 1 ? "1 policy" : `${troubled} policies`} in trouble`, "bad"] : paused ? ["Moves are stopped", "warn"] : ["Healthy", "good"];
  byId("stopped").hidden = !paused;
  byId("stopped").textContent = paused ? paused.message : "";
  const parts = [counted(view.nodeCount, "node"), `${counted(view.podCount, "pod")} placed`];
  if (leads) parts.push(`${waiting} pending`);
  const last = view.records.find((each) => each.phase !== "Predicted");
  if (last) parts.push(`last move ${moment(last.time).textContent}`);
  const shown = [chip(word, look), element("span", parts.join(" \u00b7 "))];
  const holder = document.createElement("p");
  holder.append(...shown);
  if (byId("status").innerHTML !== holder.innerHTML) byId("status").replaceChildren(...shown);
}

function show(view) {
  byId("content").hidden = byId("sections").hidden = false;
  clock = view.time ? Date.parse(view.time) : Date.now();
  const kept = new Set(view.nodes.map((each) => each.node));
  const gone = view.isWhole ? [...nodes.keys()].filter((name) => !kept.has(name)) : view.gone;
  for (const name of gone) {
    nodes.get(name)?.tile?.parentNode.remove();
    nodes.delete(name);
  }
  isLarge = view.nodeCount > UNFOLDED;
  view.nodes.forEach(draw);
  if (view.nodes.length || gone.length) zones();
  if (!view.nodeCount) byId("zones").replaceChildren(element("p", "The cluster has no node.", "quiet"));
  standby(view.standing);
  const waiting = Object.values(view.depths).reduce((sum, count) => sum + count, 0);
  health(view, waiting);
  byId("reasons").replaceChildren(...Object.entries(view.reasons).map(([name, count]) => {
    const item = element("li");
    item.append(chip(`${count} ${name}`, "warn"));
    return item;
  }));
  byId("more").textContent = waiting > view.queue.length ? `The first ${view.queue.length} of ${waiting}.` : "";
  fill("waiting", view.queue.map((each) => row("waiting", [asked("pod", each.pod), each.queue, new Duration(each.waitedSeconds), each.attempts, each.rejectedBy.join(", ") || NONE])), 5, "No pod waits.");
  fill("rows", view.policies.map(policyRow), 8, "There is no SchedulingPolicy. Begin with one that only predicts: kubectl apply -f examples/rebalance-dry-run.yaml");
  byId("drains").hidden = !view.maintenances.length;
  fill("maintenances", view.maintenances.map(maintenanceRow), 5, "");
  racks(view);
  hours(view.slots);
  fill("changes", view.changes.map(changeRow), 4, "No policy was made, stopped, resumed or has changed its state in these hours.");
  moves = [...view.moves, ...view.records];
  showMoves();
  byId("standing").textContent = `\u00b7 ${view.standing}`;
  document.body.classList.remove("stale");
}

byId("filter").addEventListener("input", () => {
  showMoves();
  history.replaceState(null, "", byId("filter").value ? `?filter=${encodeURIComponent(byId("filter").value)}#moves` : location.pathname);
});
byId("filter").value = new URLSearchParams(location.search).get("filter") || "";

// A stream ends after some seconds and is asked for again: so the page outlives a fail-over.
async function listen(mine) {
  const asking = early || ask(last);
  early = null;
  const answer = await asking;
  if (proxied && answer.status === 401) throw new Error(`${(await answer.text()).trim()}; reload the page to sign in again`);
  if (!proxied && (answer.status === 401 || answer.status === 403)) {
    token = "";
    sessionStorage.removeItem("token");
    byId("ask").hidden = false;
    throw new Error(await answer.text());
  }
  if (!answer.ok) throw new Error(await answer.text());
  byId("ask").hidden = true;
  if (token) sessionStorage.setItem("token", token);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    if (mine !== current) return void reader.cancel();
    text += value;
    const events = text.split("\n\n");
    text = events.pop();
    for (const event of events) {
      const [, id, data] = /^id: (\S+)\ndata: (.*)$/s.exec(event) || [];
      if (data) {
        show(JSON.parse(data));
        last = id;
      } else {
        status.replaceChildren(chip("Old", "warn"), element("span", "The operator is busy; what is shown is old."));
      }
    }
  }
}

async function follow() {
  const mine = ++current;
  while (mine === current && (token || proxied)) {
    try {
      await listen(mine);
    } catch (error) {
      document.body.classList.add("stale");
      status.replaceChildren(chip("No answer", "bad"), element("span", `No answer, trying again: ${error.message.trim()}`));
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
    if (each === null || each === "" || (Array.isArray(each) && !each.length)) return "";
    if (typeof each === "object") return `${indent}${words}:\n${lines(each, `${indent}  `)}`;
    return `${indent}${words}: ${each}`;
  }).filter(Boolean).join("\n");
}

byId("zones").addEventListener("keydown", walkTiles);

// For a screen on a wall: nothing to click, larger, and only what is seen from afar.
document.body.classList.toggle("wall", new URLSearchParams(location.search).has("wall"));

byId("ask").hidden = proxied;
if (token || proxied) follow();
