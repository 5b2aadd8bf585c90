// Before the first paint and before the charts' library. A classic script: modules wait for the page.
(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem("loloha-theme");
  } catch {
    // Storage may be forbidden: then the system decides.
  }
  // A chosen theme must not flash in late.
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  // The library may fail before any module could listen.
  const note = (event) => {
    if (event.target.id === "charts") document.documentElement.dataset.charts = "failed";
  };
  window.addEventListener("error", note, true);
})();
