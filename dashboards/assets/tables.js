// Tables sort by a click on their head and show a page of rows at a time, on the dashboard and in reports alike.
// Rows come as HTML in an attribute, made and escaped on the server: thousands of components would freeze the page.
(function () {
  const ROWS = 15;
  const states = new Map();
  const filled = new WeakMap();
  const key = (table) => location.pathname + "#" + table.dataset.name;
  const state = (table) => {
    if (!states.has(key(table))) states.set(key(table), { column: -1, down: true, page: 0 });
    return states.get(key(table));
  };
  const value = (row, column) => {
    const cell = row.cells[column];
    const text = (cell && cell.dataset.value) || "";
    return text === "" ? null : isNaN(text) ? text : Number(text);
  };
  // Numbers before texts, missing ones last whichever way the order is.
  const compare = (a, b, down) => {
    if (a === null || b === null) return (a === null) - (b === null);
    if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
    const order = typeof a === "number" ? a - b : a.localeCompare(b);
    return down ? -order : order;
  };

  function arrange(table) {
    const given = table.dataset.body;
    const body = table.tBodies[0] || table.createTBody();
    if (given !== undefined && filled.get(table) !== given) {
      body.innerHTML = given;
      filled.set(table, given);
    }
    const now = state(table);
    const rows = [...body.rows];
    if (now.column >= 0) {
      const sorted = rows
        .map((row, place) => [value(row, now.column), place, row])
        .sort((a, b) => compare(a[0], b[0], now.down) || a[1] - b[1])
        .map((entry) => entry[2]);
      if (sorted.some((row, i) => row !== rows[i])) sorted.forEach((row) => body.appendChild(row));
    }
    const pages = Math.max(Math.ceil(rows.length / ROWS), 1);
    now.page = Math.min(now.page, pages - 1);
    [...body.rows].forEach((row, i) => {
      const hidden = pages > 1 && Math.floor(i / ROWS) !== now.page;
      if (row.hidden !== hidden) row.hidden = hidden;
    });
    [...table.tHead.rows[0].cells].forEach((cell, i) => {
      const sort = i !== now.column ? "none" : now.down ? "descending" : "ascending";
      if (cell.getAttribute("aria-sort") !== sort) cell.setAttribute("aria-sort", sort);
    });
    turner(table, now, pages, rows.length);
  }

  function turner(table, now, pages, count) {
    let bar = table.parentElement.nextElementSibling;
    if (!bar || !bar.classList.contains("turner")) {
      if (pages < 2) return;
      bar = document.createElement("div");
      bar.className = "turner";
      bar.innerHTML = '<button class="button" type="button" data-turn="-1">Previous</button><span></span><button class="button" type="button" data-turn="1">Next</button>';
      table.parentElement.after(bar);
    }
    const text = `${now.page * ROWS + 1}–${Math.min((now.page + 1) * ROWS, count)} of ${count}`;
    const shown = bar.querySelector("span");
    if (shown.textContent !== text) shown.textContent = text;
    bar.hidden = pages < 2;
    bar.querySelector('[data-turn="-1"]').disabled = now.page === 0;
    bar.querySelector('[data-turn="1"]').disabled = now.page === pages - 1;
  }

  let waiting = false;
  function all() {
    waiting = false;
    document.querySelectorAll("table.sortable").forEach(arrange);
  }
  function soon() {
    if (!waiting) requestAnimationFrame(all);
    waiting = true;
  }

  document.addEventListener("click", (event) => {
    const sort = event.target.closest && event.target.closest("button.sort");
    const turn = event.target.closest && event.target.closest("[data-turn]");
    if (sort) {
      const cell = sort.closest("th");
      const table = cell.closest("table");
      const now = state(table);
      now.down = now.column === cell.cellIndex ? !now.down : true;
      now.column = cell.cellIndex;
      now.page = 0;
      arrange(table);
    } else if (event.target.closest && event.target.closest("table.sortable a.trace")) {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      history.pushState({}, "", event.target.closest("a").href);
      window.dispatchEvent(new CustomEvent("_dashprivate_pushstate")); // as dcc.Link does
    } else if (turn) {
      const table = turn.closest(".turner").previousElementSibling.querySelector("table");
      state(table).page += Number(turn.dataset.turn);
      arrange(table);
    }
  });
  new MutationObserver(soon).observe(document.documentElement, { childList: true, subtree: true, attributeFilter: ["data-body"] });
  soon();
})();
