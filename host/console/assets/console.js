// Shows times in the zone of the browser. Without this script they are in UTC.
(() => {
  const format = new Intl.DateTimeFormat(undefined, {
    year: "numeric", month: "short", day: "2-digit", hour: "2-digit", minute: "2-digit",
    hour12: false, timeZoneName: "short",
  });
  const showTimes = () => {
    for (const time of document.querySelectorAll("time[datetime]:not([title])")) {
      const at = new Date(time.dateTime);
      if (Number.isNaN(at.valueOf())) continue;
      time.title = time.dateTime;
      time.textContent = format.format(at);
    }
  };
  showTimes();
  document.addEventListener("htmx:afterSettle", showTimes);
  // After the end of the session, the whole page is loaded again, so that the person signs in.
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (!new URL(event.detail.xhr.responseURL).pathname.endsWith("/sign-in")) return;
    event.detail.shouldSwap = false;
    location.reload();
  });
  // An error is shown as a page.
  document.addEventListener("htmx:responseError", (event) => {
    location.href = event.detail.xhr.responseURL;
  });
  // "/" moves to the search.
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName ?? "")) return;
    const search = document.getElementById("q");
    if (search) { event.preventDefault(); search.focus(); }
  });
})();
