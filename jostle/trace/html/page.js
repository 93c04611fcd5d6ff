// Links open what they point to; tables sort by a column; a block of the budget is enlarged; the search keeps the events
// that match. Nothing is fetched.
(() => {
  const reveal = (element) => {
    for (let at = element; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  };
  const follow = () => {
    const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    if (target) { reveal(target); target.scrollIntoView({ block: "center" }); }
  };
  window.addEventListener("hashchange", follow);
  follow();

  const sorted = (head) => {
    const table = head.closest("table"), at = head.cellIndex, up = head.getAttribute("aria-sort") !== "ascending";
    const text = (row) => (row.cells[at] ? row.cells[at].textContent.trim() : "");
    const number = (row) => parseFloat(text(row).replace(/^[^\d+.-]+/, ""));
    const order = (a, b) => {
      const [x, y] = [number(a), number(b)];
      return isNaN(x) || isNaN(y) ? text(a).localeCompare(text(b)) : x - y;
    };
    const body = table.tBodies[0];
    [...body.rows].sort((a, b) => (up ? order(a, b) : order(b, a))).forEach((row) => body.append(row));
    for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
  };
  for (const head of document.querySelectorAll(".data thead th")) {
    head.tabIndex = 0;
    head.addEventListener("click", () => sorted(head));
    head.addEventListener("keydown", (key) => { if (key.key === "Enter") sorted(head); });
  }

  for (const icicle of document.querySelectorAll(".icicle")) {
    const told = document.createElement("p");
    told.className = "picked";
    icicle.after(told);
    const zoom = (block) => {
      icicle.querySelectorAll(".on, .focus").forEach((b) => b.classList.remove("on", "focus"));
      icicle.classList.toggle("zoom", Boolean(block));
      told.replaceChildren();
      if (!block) return;
      block.classList.add("focus");
      for (let at = block.parentElement; at !== icicle; at = at.parentElement) at.classList.add("on");
      const label = block.firstElementChild, name = document.createElement("span"), back = document.createElement("button");
      name.textContent = label.title;
      back.textContent = "whole budget";
      back.type = "button";
      back.addEventListener("click", () => zoom(null));
      told.append(name);
      if (label.hash) {
        const event = document.createElement("a");
        [event.href, event.textContent] = [label.hash, "its event"];
        told.append(event);
      }
      told.append(back);
    };
    icicle.addEventListener("click", (click) => {
      const label = click.target.closest(".label");
      if (!label) return;
      click.preventDefault();
      zoom(label.parentElement.classList.contains("focus") ? null : label.parentElement);
    });
    icicle.addEventListener("keydown", (key) => { if (key.key === "Escape") zoom(null); });
  }

  const tree = document.querySelector(".tree");
  if (!tree) return;
  const all = (open) => tree.querySelectorAll("details").forEach((d) => { d.open = open; });
  document.getElementById("open").addEventListener("click", () => all(true));
  document.getElementById("close").addEventListener("click", () => all(false));
  const find = document.getElementById("find"), many = document.getElementById("many"), whole = many.textContent;
  let waiting = 0;
  const search = () => {
    const words = find.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const nodes = [...tree.querySelectorAll("details, .leaf")].reverse();
    const kept = new Set();
    let matches = 0;
    for (const node of nodes) {
      const own = (node.tagName === "DETAILS" ? node.firstElementChild : node).textContent.toLowerCase();
      const hit = words.every((word) => own.includes(word));
      node.hidden = !hit && !kept.has(node);
      if (hit && node.id) matches += 1;
      if (!node.hidden && words.length) {
        const parent = node.parentElement && node.parentElement.closest("details");
        if (parent) { kept.add(parent); parent.open = true; }
      }
    }
    many.textContent = words.length ? `${matches} of ${whole}` : whole;
  };
  find.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(search, 120); });
  document.addEventListener("keydown", (key) => {
    if (key.key === "/" && document.activeElement.tagName !== "INPUT") { key.preventDefault(); find.focus(); }
    if (key.key === "Escape" && document.activeElement === find) { find.value = ""; search(); }
  });
})();
