// Lists the other versions of a published site, /VERSION/…, under its name in the sidebar. What versions there are
// says ../versions.json (website.published); a copy in a folder, and a site with one version, shows nothing.
const base = new URL(document.documentElement.dataset.content_root, location.href);
const own = decodeURIComponent(base.pathname.split("/").at(-2) ?? "");
const brand = document.querySelector(".sidebar-brand");

async function follow(event) {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const { href, dataset } = event.currentTarget;
  const there = await fetch(href, { method: "HEAD" }).then((answer) => answer.ok, () => false);
  location.assign(there ? href : dataset.start);
}

function shown(versions) {
  const list = document.createElement("details");
  list.className = "versions";
  list.innerHTML = "<summary></summary><ul></ul>";
  list.firstChild.textContent = `Version ${own}`;
  for (const version of versions) {
    const start = new URL(`../${encodeURIComponent(version)}/`, base);
    const link = document.createElement("a");
    link.textContent = version;
    link.href = new URL(location.href.slice(base.href.length), start);
    link.dataset.start = start;
    if (version === own) link.setAttribute("aria-current", "true");
    else link.addEventListener("click", follow);
    list.lastChild.append(document.createElement("li"));
    list.lastChild.lastChild.append(link);
  }
  list.addEventListener("keydown", ({ key }) => {
    if (key !== "Escape" || !list.open) return;
    list.open = false;
    list.firstChild.focus();
  });
  brand.after(list);
}

if (brand && location.protocol.startsWith("http")) {
  fetch(new URL("../versions.json", base))
    .then((answer) => (answer.ok ? answer.json() : []))
    .then((versions) => versions.length > 1 && versions.includes(own) && shown(versions), () => {});
}
