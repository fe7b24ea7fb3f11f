"use strict";
/* A circle and a matrix of the same graph, linked: search, thresholds, evidence, and one graph or another. */
(function () {
  const { csv, download, button } = window.precisionnet;
  const RATES = [null, 0.5, 0.2, 0.1, 0.05, 0.01, 0.001];
  const LEVEL = 0.05, FIRST_SHOWN = 150, MATCHES = 8, PARTNERS = 12, STEPS = 200;

  const text = value => value === null || value === undefined ? "–" : String(value);
  const signed = value => (value > 0 ? "+" : "") + d3.format(".3~r")(value).replace("−", "-");
  const rate = q => q === null ? "not tested" : q < 1e-4 ? "q < 0.0001" : "q = " + d3.format(".2~r")(q);

  function read(root) {
    const told = JSON.parse(document.getElementById(root.dataset.source).textContent);
    const ending = commonEnding(told.names);
    told.graphs.forEach(graph => { graph.largest = d3.max(graph.v, value => Math.abs(value)) || 1; });
    const about = {
      n: told.names.length,
      names: told.names,
      labels: told.names.map(name => shorten(name.slice(0, name.length - ending) || name, 22)),
      order: told.order,
      nodeValues: told.nodes && told.nodes.values,
      nodeLabel: told.nodes && told.nodes.label,
      graphs: told.graphs,
      sign: (graph, e) => graph.plain && graph.plain[e] ? "plain" : (graph.t && graph.sure[e] && graph.t[e] || graph.v[e]) > 0 ? "positive" : "negative",
      pale: (graph, e) => graph.sure !== null && !graph.sure[e],
      kind: (graph, e) => about.pale(graph, e) ? "pale" : about.sign(graph, e),
    };
    return about;
  }

  function shorten(name, most) {
    return name.length > most ? name.slice(0, most - 1) + "…" : name;
  }

  /* Letters that all names end with, from an underscore on: they say nothing. */
  function commonEnding(names) {
    if (names.length < 2) return 0;
    let k = 0;
    const least = d3.min(names, name => name.length);
    while (k < least && names.every(name => name[name.length - 1 - k] === names[0][names[0].length - 1 - k])) k += 1;
    const ending = names[0].slice(names[0].length - k), cut = ending.indexOf("_");
    return cut < 0 ? 0 : k - cut;
  }

  function explorer(root) {
    const about = read(root), find = name => root.querySelector(name);
    const state = { graph: about.graphs[0], least: 0, rate: null, shown: [], kept: null, node: null, edge: null, pair: null };
    const tip = find(".tip"), said = find(".about"), counted = find(".count");
    const strength = find(".strength"), evidence = find(".evidence");
    root.hidden = false;

    const on = {
      node: (one, event) => { point({ node: one }); tell([about.names[one], nodeLine(one)], event); },
      edge: (e, event) => { point({ edge: e }); tell(edgeLines(e), event); },
      cell: (hit, event) => {
        if (!hit) { on.leave(); return; }
        if (hit.edge !== undefined) { on.edge(hit.edge, event); return; }
        point({ pair: hit.pair });
        const [a, b] = hit.pair;
        tell(a === b ? [about.names[a], nodeLine(a)] : [about.names[a], about.names[b], "no edge among those shown"], event);
      },
      leave: () => { point({}); tip.hidden = true; },
      keep: one => choose(state.kept === one ? null : one),
    };
    const circle = window.precisionnet.circle(find(".circle"), about, on);
    const matrix = window.precisionnet.matrix(find(".matrix .box"), about, on);

    const partners = one => state.shown.filter(e => state.graph.i[e] === one || state.graph.j[e] === one);
    const other = (e, one) => state.graph.i[e] === one ? state.graph.j[e] : state.graph.i[e];
    const sized = (e, value) => about.sign(state.graph, e) === "plain" ? d3.format(".3~r")(Math.abs(value)) : signed(value);
    const valueOf = e => sized(e, state.graph.v[e]);

    const testedAs = e => !state.graph.t || state.graph.t[e] === null ? "" : `tested: ${sized(e, state.graph.t[e])}, `;

    function nodeLine(one) {
      const { graph } = state, count = partners(one).length;
      const all = d3.range(graph.v.length).filter(e => graph.i[e] === one || graph.j[e] === one).length;
      const edges = `${count} of ${all} ${all === 1 ? "edge" : "edges"} shown${count < all ? "; the others are hidden by Size or Evidence" : ""}`;
      const value = about.nodeValues && about.nodeValues[one];
      return value === null || value === undefined ? edges : `${edges}. ${about.nodeLabel[0].toUpperCase()}${about.nodeLabel.slice(1)}: ${signed(value)}`;
    }

    function edgeLines(e) {
      const { graph } = state;
      const tested = graph.q ? rate(graph.q[e]) : graph.sure ? (graph.sure[e] ? "named often enough" : "not told from chance") : "not tested";
      return [about.names[graph.i[e]], about.names[graph.j[e]], `${graph.label}: ${valueOf(e)} (${testedAs(e)}${tested})`];
    }

    /* A box beside the pointer; every line is text. */
    function tell(lines, event) {
      tip.replaceChildren(...lines.map((line, k) => {
        const made = document.createElement(k < lines.length - 1 ? "b" : "span");
        made.textContent = line;
        return made;
      }));
      tip.hidden = false;
      const box = root.getBoundingClientRect(), wide = tip.offsetWidth;
      const x = event.clientX - box.left + 14, y = event.clientY - box.top + 14;
      tip.style.left = Math.max(0, Math.min(x, box.width - wide - 4)) + "px";
      tip.style.top = y + "px";
    }

    function point({ node = null, edge = null, pair = null }) {
      Object.assign(state, { node, edge, pair });
      mark();
    }

    function mark() {
      const { graph, edge, pair } = state, node = state.node ?? (edge === null && pair === null ? state.kept : null);
      circle.mark(graph, pair !== null && pair[0] === pair[1] ? pair[0] : node, edge);
      if (edge !== null) matrix.mark(graph.i[edge], graph.j[edge]);
      else if (pair !== null) matrix.mark(pair[0], pair[1]);
      else matrix.mark(node, node);
    }

    function choose(one) {
      state.kept = one;
      if (about.n > circle.nodes().length) circle.draw(state.graph, state.shown, one);
      describe();
      mark();
    }

    /* The column that is kept, its edges, and a way to go on to the column at their other end. */
    function describe() {
      const one = state.kept;
      said.replaceChildren();
      if (one === null) {
        said.textContent = "Point at a column, an arc or a cell for its name and value. Click a column, or find it by name, to keep it.";
        return;
      }
      const title = document.createElement("h4"), line = document.createElement("p"), list = document.createElement("ol");
      title.textContent = about.names[one];
      line.textContent = nodeLine(one);
      const own = partners(one);
      own.slice(0, PARTNERS).forEach(e => {
        const item = document.createElement("li"), go = button(about.names[other(e, one)]), value = document.createElement("span");
        go.className = "quiet";
        go.addEventListener("click", () => choose(other(e, one)));
        value.textContent = valueOf(e) + (state.graph.q ? ", " + rate(state.graph.q[e]) : "");
        value.className = about.kind(state.graph, e);
        item.append(go, value);
        list.append(item);
      });
      const close = button("Let go", "Let go of " + about.names[one]);
      close.className = "quiet";
      close.addEventListener("click", () => choose(null));
      said.append(title, line, list);
      if (own.length > PARTNERS) said.append(`and ${own.length - PARTNERS} more `);
      said.append(close);
    }

    function filter() {
      const { graph } = state;
      state.shown = d3.range(graph.v.length).filter(e => Math.abs(graph.v[e]) >= state.least && passes(graph, e));
      const all = graph.total > graph.v.length ? `${d3.format(",")(graph.total)}, of which this page carries the strongest ${d3.format(",")(graph.v.length)}` : d3.format(",")(graph.total);
      counted.textContent = `${d3.format(",")(state.shown.length)} edge${state.shown.length === 1 ? "" : "s"} shown of ${all}. ${graph.note}`;
      root.dataset.shown = state.shown.length;
      find(".strength-said").textContent = `${d3.format(".2~r")(state.least)} or more`;
      circle.draw(graph, state.shown, state.kept);
      const round = circle.nodes().length;
      if (round < about.n) counted.append(` The circle has ${round} of ${d3.format(",")(about.n)} columns, those of the strongest edges.`);
      matrix.draw(graph, state.shown);
      describe();
      mark();
    }

    function passes(graph, e) {
      if (state.rate === null) return true;
      return graph.q ? graph.q[e] !== null && graph.q[e] <= state.rate : graph.sure ? Boolean(graph.sure[e]) : true;
    }

    /* A slider of ranks would jump; one of sizes has most edges in its first steps. Its steps are squares. */
    const sizeAt = step => state.graph.largest * (step / STEPS) ** 2;

    function take(graph) {
      state.graph = graph;
      const order = graph.v.map(value => Math.abs(value)).sort(d3.descending);
      const start = order.length > FIRST_SHOWN ? order[FIRST_SHOWN - 1] : 0;
      strength.value = Math.floor(STEPS * Math.sqrt(start / graph.largest));
      state.least = sizeAt(+strength.value);
      strength.setAttribute("aria-label", "Smallest size shown: " + graph.label);
      find(".strength-name").textContent = "Size of the " + graph.label;
      const tested = Boolean(graph.q || graph.sure);
      evidence.closest("label").hidden = !tested;
      find(".untested").hidden = tested;
      evidence.max = graph.q ? RATES.length - 1 : 1;
      evidence.value = 0;
      sayRate();
      legend();
      filter();
    }

    function sayRate() {
      state.rate = state.graph.q ? RATES[+evidence.value] : +evidence.value ? LEVEL : null;
      const only = state.graph.q ? "q up to " + state.rate : "only those named often enough";
      find(".evidence-said").textContent = state.rate === null ? "all, tested or not" : only;
      evidence.setAttribute("aria-valuetext", find(".evidence-said").textContent);
    }

    function legend() {
      const { graph } = state, kinds = [["positive", graph.signs[0]], ["negative", graph.signs[1]]];
      if (graph.sure) kinds.push(["pale", "not told from chance"]);
      if (graph.plain) kinds.push(["plain", graph.signs[1] ? "no direction" : graph.signs[0]]);
      const there = new Set(d3.range(graph.v.length).map(e => about.kind(graph, e)));
      find(".legend").replaceChildren(...kinds.filter(([kind]) => there.has(kind)).map(([kind, meaning]) => {
        const made = document.createElement("span");
        made.className = "key " + kind;
        made.textContent = meaning;
        return made;
      }));
    }

    function search() {
      const input = find("input[type=search]"), list = find(".matches");
      let matches = [], at = -1;
      const show = () => {
        const wanted = input.value.trim().toLowerCase();
        matches = wanted ? d3.range(about.n).filter(k => about.names[k].toLowerCase().includes(wanted)).slice(0, MATCHES) : [];
        at = -1;
        list.replaceChildren(...matches.map((one, k) => {
          const made = document.createElement("li");
          made.setAttribute("role", "option");
          made.id = `${root.id}-match-${k}`;
          made.textContent = about.names[one];
          made.addEventListener("pointerdown", event => { event.preventDefault(); pick(one); });
          return made;
        }));
        if (wanted && !matches.length) list.append(Object.assign(document.createElement("li"), { textContent: "No column has this in its name." }));
        list.hidden = !list.children.length;
        input.setAttribute("aria-expanded", String(!list.hidden));
      };
      const pick = one => {
        input.value = about.names[one];
        list.hidden = true;
        input.setAttribute("aria-expanded", "false");
        choose(one);
      };
      const move = step => {
        if (!matches.length) return;
        at = (at + step + matches.length) % matches.length;
        [...list.children].forEach((item, k) => item.setAttribute("aria-selected", String(k === at)));
        input.setAttribute("aria-activedescendant", `${root.id}-match-${at}`);
      };
      input.addEventListener("input", show);
      input.addEventListener("blur", () => { list.hidden = true; });
      input.addEventListener("keydown", event => {
        if (event.key === "ArrowDown" || event.key === "ArrowUp") { event.preventDefault(); move(event.key === "ArrowDown" ? 1 : -1); }
        if (event.key === "Enter" && matches.length) pick(matches[Math.max(at, 0)]);
        if (event.key === "Escape") { input.value = ""; list.hidden = true; choose(null); }
      });
    }

    /* Arrow keys go from column to column: round the circle, or down and up the matrix. */
    function keys(element, order) {
      element.addEventListener("keydown", event => {
        const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        if (event.key === "Escape") choose(null);
        const all = order();
        if (!step || !all.length) return;
        event.preventDefault();
        const at = all.indexOf(state.kept);
        choose(all[at < 0 ? 0 : (at + step + all.length) % all.length]);
      });
    }

    root.querySelectorAll("input[type=radio]").forEach((input, k) => input.addEventListener("change", () => take(about.graphs[k])));
    strength.addEventListener("input", () => { state.least = sizeAt(+strength.value); filter(); });
    evidence.addEventListener("input", () => { sayRate(); filter(); });
    find(".save").addEventListener("click", () => {
      const { graph } = state, rows = state.shown.map(e => [about.names[graph.i[e]], about.names[graph.j[e]], graph.v[e], ...(graph.t ? [text(graph.t[e])] : []), text(graph.q && graph.q[e])]);
      download(`edges-${graph.key}.csv`, csv([["column", "column", graph.label, ...(graph.t ? ["tested"] : []), "q"], ...rows]));
    });
    search();
    keys(find(".circle svg"), circle.nodes);
    keys(find(".matrix canvas"), () => about.order);
    new ResizeObserver(() => { matrix.draw(state.graph, state.shown); mark(); }).observe(find(".matrix .box"));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => matrix.draw(state.graph, state.shown));
    document.querySelectorAll(`[data-show-graph^="${root.id}:"]`).forEach(link => link.addEventListener("click", () => {
      const input = root.querySelector(`input[value="${CSS.escape(link.dataset.showGraph.split(":")[1])}"]`);
      if (input && !input.checked) input.click();
    }));
    take(state.graph);
    document.documentElement.classList.add("scripted");
    root.dataset.ready = "yes";
  }

  /* Where drawing fails, the pictures of a page without scripts stay. */
  document.querySelectorAll(".explorer").forEach(root => {
    try {
      explorer(root);
    } catch (error) {
      root.hidden = true;
      console.error(error);
    }
  });
})();
