"use strict";
// The page asks for itself every two seconds, or more rarely where that takes long, and puts what has changed into its
// place. Where somebody has selected text, nothing is replaced.
(() => {
  const least = 2000, share = 20;
  const pause = document.getElementById("pause");
  const trouble = document.getElementById("trouble");
  let paused = false, timer = 0, busy = false;

  const selected = (part) => {
    const s = getSelection();
    return s && !s.isCollapsed && s.containsNode(part, true);
  };
  // place is how a link or field of a part is found again in a new one.
  const place = (part) => {
    const at = document.activeElement;
    if (!at || !part.contains(at) || at === part) return null;
    const all = (root) => [...root.querySelectorAll("a,button,[tabindex]")];
    const href = at.getAttribute("href"), nth = all(part).indexOf(at);
    return (root) => all(root).find((e) => href && e.getAttribute("href") === href) || all(root)[nth];
  };
  const show = (fresh) => {
    for (const part of document.querySelectorAll("[data-live]")) {
      const now = fresh.getElementById(part.id);
      if (now && (now.isEqualNode(part) || selected(part))) continue;
      const again = place(part);
      if (!now) { part.remove(); continue; }
      part.replaceWith(now);
      if (again) again(now)?.focus({ preventScroll: true });
    }
    // What was not there before, such as handlers that block, is put before what follows it.
    for (const now of [...fresh.querySelectorAll("[data-live]")]) {
      if (document.getElementById(now.id)) continue;
      const next = now.nextElementSibling && document.getElementById(now.nextElementSibling.id);
      if (next) next.before(now);
    }
  };
  const ask = async () => {
    if (busy) return;
    busy = true;
    const began = performance.now();
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" });
      const text = await answer.text();
      if (!answer.ok && answer.status !== 404) throw new Error(String(answer.status));
      if (!paused) show(new DOMParser().parseFromString(text, "text/html"));
      trouble.hidden = true;
    } catch {
      trouble.hidden = false;
    }
    busy = false;
    plan(Math.max(least, share * (performance.now() - began)));
  };
  const plan = (wait) => {
    clearTimeout(timer);
    if (!paused && !document.hidden) timer = setTimeout(ask, wait);
  };
  pause.hidden = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.textContent = paused ? "Go on" : "Pause";
    plan(0);
  });
  document.addEventListener("visibilitychange", () => plan(0));
  plan(least);
})();
