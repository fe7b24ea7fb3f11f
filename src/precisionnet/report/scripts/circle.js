"use strict";
/* Columns on a circle and arcs between them. Names are set as text, never as markup. */
(function () {
  const SIZE = 760, MOST_NODES = 200, MOST_ON_A_LARGE_GRAPH = 120, MOST_ARCS = 600;

  /* The columns on the circle: all of them, or those of the strongest edges, the chosen column's first. */
  function chosenNodes(about, graph, shown, node) {
    if (about.n <= MOST_NODES) return about.order;
    const kept = new Set(node === null ? [] : [node]);
    const own = node === null ? [] : shown.filter(e => graph.i[e] === node || graph.j[e] === node);
    for (const e of [...own, ...shown]) {
      if (kept.size > MOST_ON_A_LARGE_GRAPH - 2) break;
      kept.add(graph.i[e]).add(graph.j[e]);
    }
    return about.order.filter(one => kept.has(one));
  }

  function circle(box, about, on) {
    const root = d3.select(box).append("svg").attr("viewBox", `0 0 ${SIZE} ${SIZE}`)
      .attr("tabindex", 0).attr("role", "group")
      .attr("aria-label", "The graph as a circle. Arrow keys go from column to column, Escape lets go.");
    const middle = root.append("g").attr("transform", `translate(${SIZE / 2},${SIZE / 2})`);
    const hits = middle.append("g"), arcs = middle.append("g").attr("class", "arcs"), dots = middle.append("g");
    let nodes = [], edges = [];

    function draw(graph, shown, node) {
      nodes = chosenNodes(about, graph, shown, node);
      const angle = d3.scalePoint(d3.range(nodes.length), [0, 2 * Math.PI * (1 - 1 / Math.max(nodes.length, 1))]);
      const letters = Math.max(5.5, Math.min(nodes.length <= 24 ? 16 : 12, 1150 / nodes.length));
      const longest = d3.max(nodes, one => about.labels[one].length) || 1;
      const radius = Math.max(150, SIZE / 2 - 18 - longest * 0.53 * letters);
      const at = new Map(nodes.map((one, k) => [one, angle(k)]));
      const xy = one => [radius * Math.sin(at.get(one)), -radius * Math.cos(at.get(one))];
      const inside = shown.filter(e => at.has(graph.i[e]) && at.has(graph.j[e]));
      const own = e => graph.i[e] === node || graph.j[e] === node;
      edges = inside.slice(0, MOST_ARCS).concat(inside.slice(MOST_ARCS).filter(own)).reverse();
      const path = e => {
        const [a, b] = xy(graph.i[e]), [c, d] = xy(graph.j[e]), line = d3.path();
        const x = (a + c) / 2, y = (b + d) / 2, bend = Math.hypot(x, y) < 0.9 * radius ? 0.35 : 0.8;
        line.moveTo(a, b);
        line.quadraticCurveTo(bend * x, bend * y, c, d);
        return line.toString();
      };
      const share = e => Math.abs(graph.v[e]) / graph.largest;
      arcs.selectAll("path").data(edges, e => e).join("path")
        .attr("class", e => "arc " + about.kind(graph, e))
        .attr("d", path)
        .attr("stroke-width", e => about.pale(graph, e) ? 1 : 0.8 + 4.2 * share(e))
        .attr("opacity", e => about.pale(graph, e) ? 0.6 : 0.4 + 0.55 * share(e));
      hits.selectAll("path").data(edges, e => e).join("path").attr("class", "hit").attr("d", path)
        .on("pointerenter pointermove", (event, e) => on.edge(e, event)).on("pointerleave", () => on.leave());
      const size = about.nodeValues
        ? d3.scaleSqrt([0, d3.max(about.nodeValues, value => Math.abs(value || 0)) || 1], [2.2, 8]) : () => 3.2;
      dots.selectAll("g.node").data(nodes, one => one).join(enter => {
        const made = enter.append("g").attr("class", "node");
        made.append("circle");
        made.append("text");
        return made;
      }).attr("transform", one => `rotate(${at.get(one) * 180 / Math.PI - 90}) translate(${radius},0)`)
        .on("pointerenter pointermove", (event, one) => on.node(one, event)).on("pointerleave", () => on.leave())
        .on("click", (event, one) => on.keep(one))
        .each(function (one) {
          const turned = at.get(one) > Math.PI;
          d3.select(this).select("circle").attr("r", size(about.nodeValues ? Math.abs(about.nodeValues[one] || 0) : 0));
          d3.select(this).select("text").text(about.labels[one])
            .attr("font-size", letters).attr("dy", "0.35em")
            .attr("transform", turned ? "rotate(180)" : null)
            .attr("x", turned ? -11 : 11).attr("text-anchor", turned ? "end" : "start");
        });
    }

    /* Set one column with its edges, or one edge with its columns, apart from the rest. */
    function mark(graph, node, edge) {
      const any = node !== null || edge !== null;
      const touched = e => e === edge || edge === null && (graph.i[e] === node || graph.j[e] === node);
      const near = new Set(node === null ? [] : [node]);
      edges.filter(touched).forEach(e => near.add(graph.i[e]).add(graph.j[e]));
      root.classed("marked", any);
      arcs.selectAll("path").classed("on", e => any && touched(e));
      dots.selectAll("g.node").classed("near", one => any && near.has(one)).classed("chosen", one => one === node);
    }

    return { draw, mark, nodes: () => nodes };
  }

  window.precisionnet.circle = circle;
})();
