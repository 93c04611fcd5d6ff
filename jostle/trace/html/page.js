// Links into the tree open what they point to; the search box keeps the events that match. Nothing is fetched.
(() => {
  const tree = document.querySelector(".tree");
  const reveal = (element) => {
    for (let at = element; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  };
  const follow = () => {
    const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    if (target) { reveal(target); target.scrollIntoView({ block: "center" }); }
  };
  window.addEventListener("hashchange", follow);
  follow();
  if (!tree) return;
  const all = (open) => tree.querySelectorAll("details").forEach((d) => { d.open = open; });
  document.getElementById("open").addEventListener("click", () => all(true));
  document.getElementById("close").addEventListener("click", () => all(false));
  const find = document.getElementById("find");
  let waiting = 0;
  const search = () => {
    const words = find.value.trim().toLowerCase();
    const nodes = [...tree.querySelectorAll("details, .leaf")].reverse();
    const kept = new Set();
    for (const node of nodes) {
      const own = (node.tagName === "DETAILS" ? node.firstElementChild : node).textContent.toLowerCase();
      const keep = !words || own.includes(words) || kept.has(node);
      node.hidden = !keep;
      if (keep && words) {
        const parent = node.parentElement && node.parentElement.closest("details");
        if (parent) { kept.add(parent); parent.open = true; }
      }
    }
  };
  find.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(search, 120); });
})();
