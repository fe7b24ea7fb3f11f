"use strict";
/* Tables that sort and download, and texts that copy. The page stands without this file. */
(function () {
  const NUMBER = /^[-+]([0-9]+([.,][0-9]*)?|[.,][0-9]+)([eE][-+]?[0-9]+)?%?$/;
  const STARTS = ["=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"];

  /* A cell that a spreadsheet takes for text, as precisionnet.tables_out writes it. */
  function csvCell(text) {
    const value = String(text);
    const safe = STARTS.includes(value[0]) && !NUMBER.test(value) ? "'" + value : value;
    return /[",\r\n]/.test(safe) ? '"' + safe.replaceAll('"', '""') + '"' : safe;
  }

  function csv(rows) {
    return rows.map(row => row.map(csvCell).join(",")).join("\n") + "\n";
  }

  function download(name, text) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
    link.download = name;
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  /* The first number of a cell: of "4.1 to 5.2" 4.1, of "< 0.0001" 0.0001, of a dash none. */
  function numberOf(text) {
    const found = text.replace(/,(?=[0-9]{3})/g, "").replace("−", "-").match(/[-+]?[0-9]*\.?[0-9]+(e[-+]?[0-9]+)?/i);
    return found ? parseFloat(found[0]) : NaN;
  }

  function sort(table, column, numeric) {
    const heads = [...table.tHead.rows[0].cells], head = heads[column];
    /* Numbers begin with the largest, names with A; the next click turns it round. */
    const before = head.getAttribute("aria-sort");
    const up = before === null ? !numeric : before === "descending";
    heads.forEach(one => one.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const rows = [...table.tBodies[0].rows].map(row => ({ row, text: row.cells[column].textContent.trim() }));
    const sign = up ? 1 : -1;
    rows.sort((a, b) => {
      if (!numeric) return sign * a.text.localeCompare(b.text, undefined, { numeric: true });
      const x = numberOf(a.text), y = numberOf(b.text);
      return isNaN(x) || isNaN(y) ? isNaN(x) - isNaN(y) : sign * (x - y);
    });
    table.tBodies[0].append(...rows.map(one => one.row));
  }

  function button(text, label) {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    if (label) made.setAttribute("aria-label", label);
    return made;
  }

  function livenTable(table) {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      if (!head.textContent.trim()) return;
      const name = head.textContent;
      const made = button(name);
      made.className = "sort";
      made.title = "Sort by this column";
      made.addEventListener("click", () => sort(table, column, head.classList.contains("n")));
      head.replaceChildren(made);
    });
    const box = table.closest(".scroll") || table;
    const save = button("Download as csv", "Download this table as csv: " + table.dataset.name);
    save.className = "quiet";
    save.addEventListener("click", () => {
      const rows = [...table.rows].map(row => [...row.cells].map(cell => cell.textContent.trim()));
      download(table.dataset.name + ".csv", csv(rows));
    });
    const line = document.createElement("p");
    line.className = "tools";
    line.append(save);
    box.after(line);
  }

  async function copy(text, place) {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const range = document.createRange();
      range.selectNodeContents(place);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      document.execCommand("copy");
    }
  }

  function livenCopy(place) {
    const made = button("Copy", "Copy: " + place.dataset.copy);
    made.className = "copy";
    made.addEventListener("click", async () => {
      const text = place.innerText.trim(), said = made.innerText;
      await copy(text.startsWith(said) ? text.slice(said.length).trim() : text, place);
      made.textContent = "Copied";
      setTimeout(() => { made.textContent = "Copy"; }, 1500);
    });
    place.prepend(made);
  }

  window.precisionnet = { csv, download, button };
  document.querySelectorAll("table[data-name]").forEach(livenTable);
  document.querySelectorAll("[data-copy]").forEach(livenCopy);
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(one => { one.open = true; }));
})();
