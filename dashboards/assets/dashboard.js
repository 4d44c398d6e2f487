// What only the browser can do: gate refreshes, turn a dragged range into a URL, theme, title, keys.
(function () {
  const none = () => window.dash_clientside.no_update;
  const query = (search, name, value) => {
    const given = new URLSearchParams(search || "");
    if (value) given.set(name, value);
    else given.delete(name);
    const text = given.toString().replaceAll("%3A", ":").replaceAll("%2C", ",");
    return text ? "?" + text : "";
  };
  // Plotly writes "2026-11-30 14:05:00.123" in UTC, or a number of milliseconds.
  const iso = (at) =>
    (typeof at === "number" ? new Date(at) : new Date(at.replace(" ", "T") + "Z")).toISOString().slice(0, 19) + "Z";

  window.dash_clientside = Object.assign({}, window.dash_clientside, {
    infractl: {
      // A panel still loading, a hidden tab and a paused page skip their turn, so that requests never pile up.
      // Dash marks an element while a callback fills it (its own `running` fails on the first call of a MATCH).
      beat: function (ticks, clicks, place, search) {
        const panel = document.getElementById(JSON.stringify(place, Object.keys(place).sort()));
        const busy = !panel || panel.dataset.dashIsLoading === "true";
        const by = (window.dash_clientside.callback_context.triggered[0] || {}).prop_id || "";
        const asked = by.startsWith("refresh") && clicks > 0;
        const paused = new URLSearchParams(search || "").get("live") === "off" || document.hidden;
        if (busy || (paused && !asked) || !(asked || ticks > 0)) return none();
        return Date.now();
      },
      theme: function (search) {
        const light = new URLSearchParams(search || "").get("theme") === "light";
        document.documentElement.dataset.theme = light ? "light" : "dark";
      },
      // A point that carries a link (an example trace) opens it.
      open: function (clicks) {
        const by = window.dash_clientside.callback_context.triggered[0] || {};
        const point = by.value && by.value.points && by.value.points[0];
        const to = point && point.customdata;
        return typeof to === "string" && to.includes("/trace/") ? to.split("?")[0] : none();
      },
      title: function (title) {
        if (title) document.title = title;
      },
      // Only Enter or leaving the field counts: a field that a late answer draws anew must not undo a Back.
      range: function (submits, blurs, zooms, typed, search) {
        const by = (window.dash_clientside.callback_context.triggered[0] || {}).prop_id || "";
        const now = new URLSearchParams(search || "").get("range") || "";
        if (by.startsWith("range")) {
          if (!submits && !blurs) return none();
          const text = (typed || "").trim();
          return text === now ? none() : query(search, "range", text);
        }
        const zoom = (zooms || []).find((z) => z && z["xaxis.range[0]"] !== undefined);
        if (!by.includes("relayoutData") || !zoom) return none();
        const text = iso(zoom["xaxis.range[0]"]) + ".." + iso(zoom["xaxis.range[1]"]);
        return text === now || iso(zoom["xaxis.range[0]"]) >= iso(zoom["xaxis.range[1]"]) ? none() : query(search, "range", text);
      },
    },
  });

  const by = (id) => document.getElementById(id);
  const actions = {
    "/": () => {
      const menu = by("services");
      if (menu) menu.open = true;
      const first = menu && menu.querySelector(".option");
      if (first) first.focus();
    },
    t: () => by("range") && (by("range").focus(), by("range").select()),
    r: () => by("refresh") && by("refresh").click(),
    "?": () => by("help") && (by("help").hidden = !by("help").hidden),
    Escape: () => {
      if (by("help")) by("help").hidden = true;
      if (by("services")) by("services").open = false;
    },
  };
  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName) && event.key !== "Escape";
    if (typing || event.ctrlKey || event.metaKey || event.altKey || !actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  });
  document.addEventListener("click", (event) => {
    const menu = by("services");
    if (menu && menu.open && !menu.contains(event.target)) menu.open = false;
    const share = event.target.closest && event.target.closest("#share");
    if (share && navigator.clipboard) {
      navigator.clipboard.writeText(location.href).then(() => {
        share.dataset.done = "true";
        setTimeout(() => delete share.dataset.done, 1500);
      });
    }
  });
})();
