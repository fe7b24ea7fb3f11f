"use strict";
/* The same graph as a matrix: a canvas, with bands over it for the row and the column that are pointed at. */
(function () {
  const NEAR = 3;

  function matrix(box, about, on) {
    const canvas = box.querySelector("canvas"), row = box.querySelector(".band.row"), column = box.querySelector(".band.col");
    const n = about.n, place = new Array(n);
    about.order.forEach((one, k) => { place[one] = k; });
    let side = 0, cells = 1, cell = 1, found = new Map();

    function colors() {
      const style = getComputedStyle(box), take = name => style.getPropertyValue(name).trim();
      const ground = take("--paper");
      const from = name => d3.interpolateRgb(d3.interpolateRgb(ground, take(name))(0.18), take(name));
      return { positive: from("--positive"), negative: from("--negative"), plain: from("--unsigned"), diagonal: take("--line") };
    }

    /* The strongest edge of each cell; of more columns than there are pixels, a cell is several columns wide. */
    function draw(graph, shown) {
      side = Math.floor(box.clientWidth);
      if (!side) return;
      const ratio = window.devicePixelRatio || 1, pen = canvas.getContext("2d"), color = colors();
      canvas.width = canvas.height = Math.round(side * ratio);
      pen.setTransform(ratio, 0, 0, ratio, 0, 0);
      pen.clearRect(0, 0, side, side);
      cells = Math.min(n, Math.floor(side / 1.5));
      cell = side / cells;
      pen.fillStyle = color.diagonal;
      for (let k = 0; k < cells; k += 1) pen.fillRect(k * cell, k * cell, Math.max(cell, 1), Math.max(cell, 1));
      found = new Map();
      const at = one => Math.floor(place[one] * cells / n), gap = cell > 5 ? 0.6 : 0;
      for (const e of shown) {
        const a = at(graph.i[e]), b = at(graph.j[e]);
        if (found.has(a * cells + b)) continue;
        found.set(a * cells + b, e).set(b * cells + a, e);
        const kind = about.sign(graph, e), strength = Math.sqrt(Math.abs(graph.v[e]) / graph.largest);
        pen.globalAlpha = about.pale(graph, e) ? 0.4 : 1;
        pen.fillStyle = color[kind](strength);
        for (const [x, y] of [[a, b], [b, a]]) pen.fillRect(x * cell, y * cell, Math.max(cell - gap, 1), Math.max(cell - gap, 1));
      }
      pen.globalAlpha = 1;
    }

    /* What is under a point: an edge, or two columns without one where a cell is one column. */
    function under(x, y) {
      const a = Math.floor(x / cell), b = Math.floor(y / cell);
      if (a < 0 || b < 0 || a >= cells || b >= cells) return null;
      const reach = Math.ceil(NEAR / cell) * (cell < 4);
      let best = null, distance = Infinity;
      for (let i = a - reach; i <= a + reach; i += 1) {
        for (let j = b - reach; j <= b + reach; j += 1) {
          const e = i < 0 || j < 0 || i >= cells || j >= cells ? undefined : found.get(i * cells + j);
          const off = Math.abs(i - a) + Math.abs(j - b);
          if (e !== undefined && off < distance) { best = e; distance = off; }
        }
      }
      if (best !== null) return { edge: best };
      return cells === n ? { pair: [about.order[b], about.order[a]] } : null;
    }

    function band(element, one, vertical) {
      element.hidden = one === null;
      if (one === null) return;
      const thick = Math.max(side / n, 2), start = place[one] * side / n;
      element.style[vertical ? "left" : "top"] = start + "px";
      element.style[vertical ? "width" : "height"] = thick + "px";
    }

    /* Show the bands of one column, or of the two of an edge or a pair. */
    function mark(a, b) {
      band(row, a, false);
      band(column, b, true);
    }

    canvas.addEventListener("pointermove", event => {
      const box = canvas.getBoundingClientRect();
      on.cell(under(event.clientX - box.left, event.clientY - box.top), event);
    });
    canvas.addEventListener("pointerleave", () => on.leave());
    canvas.addEventListener("click", event => {
      const box = canvas.getBoundingClientRect();
      const k = Math.floor((event.clientY - box.top) / box.height * n);
      on.keep(about.order[Math.min(Math.max(k, 0), n - 1)]);
    });
    return { draw, mark, under, place };
  }

  window.precisionnet.matrix = matrix;
})();
