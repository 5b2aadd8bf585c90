// Before the first paint, so that a chosen theme does not flash in late. A classic script: modules wait for the page.
(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem("loloha-theme");
  } catch {
    // Storage may be forbidden: then the system decides.
  }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
