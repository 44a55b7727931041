/* Flows on a map: curves between places (right-hand side of the way), circles for flows within. */

const MAP_FLOWS = 150;
const MAP_CIRCLES = 60;
const MAP_LABELS = 14;

/* Outlines of areas, as published by the custodian, coarse enough for a page. */
class Shapes {
  constructor({ axis, level, n, areas, scale }, section) {
    this.axis = axis;
    this.level = level;
    const numbers = readSigned(section('shapes'), n);
    this.rings = [];
    let at = 0;
    for (const area of areas) {
      const size = numbers[at++];
      const points = new Float64Array(2 * size);
      let x = 0;
      let y = 0;
      for (let i = 0; i < size; i += 1) {
        x += numbers[at++];
        y += numbers[at++];
        points[2 * i] = x / scale;
        points[2 * i + 1] = y / scale;
      }
      this.rings.push({ area, points });
    }
  }
}

class Chart {
  constructor(explorer) {
    this.explorer = explorer;
    this.node = h('div', {});
    this.weights();
  }

  /* Places of all levels: the mean of the finest, weighted by their flows. */
  weights() {
    const { model } = this.explorer;
    const weight = model.axes.map((axis) => new Float64Array(axis.size(axis.depth)));
    const isShared = model.header.shared;
    for (let row = 0; row + 1 < model.rowStart.length; row += 1) {
      for (let i = model.rowStart[row]; i < model.rowStart[row + 1]; i += 1) {
        weight[0][row] += Math.abs(model.value[i]);
        weight[isShared ? 0 : 1][model.column[i]] += Math.abs(model.value[i]);
      }
    }
    if (isShared) weight[1] = weight[0];
    this.at = model.axes.map((axis, number) => axis.spans.map((span) => {
      const places = model.places[number];
      if (!places) return null;
      return Array.from({ length: span.length - 1 }, (_, i) => {
        let lon = 0;
        let lat = 0;
        let sum = 0;
        for (let leaf = span[i]; leaf < span[i + 1]; leaf += 1) {
          if (Number.isNaN(places.lon[leaf])) continue;
          const mass = weight[number][leaf] + 1e-6;
          lon += mass * places.lon[leaf];
          lat += mass * places.lat[leaf];
          sum += mass;
        }
        return sum ? [lon / sum, lat / sum] : null;
      });
    }));
  }

  show(view, flows) {
    this.view = view;
    this.project(view);
    const wanted = this.explorer.order(flows);
    /* Flows within areas are far larger than those between: each kind has its own scale. */
    const isWithin = (i) => {
      const [from, to] = this.ends(view, flows, i);
      return Math.hypot(from[0] - to[0], from[1] - to[1]) < 1;
    };
    const top = [];
    const largest = [1, 1];
    const left = [MAP_FLOWS, MAP_CIRCLES];
    let missing = 0;
    for (const i of wanted) {
      if (!left[0] && !left[1]) break;
      if (!this.ends(view, flows, i)) { missing += 1; continue; }
      const kind = Number(isWithin(i));
      if (!left[kind]) continue;
      left[kind] -= 1;
      top.push(i);
      largest[kind] = Math.max(largest[kind], Math.abs(flows.value[i]));
    }
    /* But a few stray trips between areas must not look like a stream. */
    largest[0] = Math.max(largest[0], largest[1] / 200);
    const lines = [];
    const places = [];
    /* Small ones first, so that large ones lie on top. */
    for (const i of [...top].reverse()) {
      const kind = isWithin(i);
      (kind ? places : lines).push(this.draw(view, flows, i, largest[Number(kind)], kind));
    }
    const svg = s('svg', {
      viewBox: `0 0 ${this.width} ${this.height}`, role: 'img',
      'aria-label': `Map of the ${top.length} largest flows in view; the list has the same numbers`,
    }, ...this.ground(view), ...places, ...lines, ...this.labels(view, flows, top));
    this.node.replaceChildren(h('div', { class: 'map' }, svg), h('p', { class: 'note' },
      `The ${whole(top.length)} largest of ${whole(wanted.length)} flows. A circle is a flow within an area, a curve bends to the right of its direction; each kind has its own scale.`
      + (missing ? ` ${whole(missing)} larger ones have an end without a place on the map.` : '')));
  }

  /* Fit the areas in view into the drawing; degrees of longitude shrink with latitude. */
  project(view) {
    const { model } = this.explorer;
    let box = [Infinity, Infinity, -Infinity, -Infinity];
    [view.row, view.column].forEach((focus, number) => {
      const places = model.places[number];
      if (!places) return;
      const [first, last] = model.axes[number].inside(focus, model.axes[number].depth);
      for (let leaf = first; leaf < last; leaf += 1) {
        const lon = places.lon[leaf];
        const lat = places.lat[leaf];
        if (Number.isNaN(lon)) continue;
        box = [Math.min(box[0], lon), Math.min(box[1], lat), Math.max(box[2], lon), Math.max(box[3], lat)];
      }
    });
    if (box[0] === Infinity) box = [0, 0, 1, 1];
    const squeeze = Math.cos((box[1] + box[3]) / 2 * Math.PI / 180);
    const least = 0.05;
    const spanX = Math.max((box[2] - box[0]) * squeeze, least);
    const spanY = Math.max(box[3] - box[1], least);
    const available = Math.max(320, Math.min(1100, this.node.clientWidth || 900));
    this.width = available;
    this.height = Math.round(Math.min(Math.max(available * spanY / spanX, available * 0.5), available < 600 ? 520 : 720));
    const margin = 46;
    const scale = Math.min((this.width - 2 * margin) / spanX, (this.height - 2 * margin) / spanY);
    const middle = [(box[0] + box[2]) / 2, (box[1] + box[3]) / 2];
    this.x = (lon) => this.width / 2 + (lon - middle[0]) * squeeze * scale;
    this.y = (lat) => this.height / 2 - (lat - middle[1]) * scale;
  }

  point(number, level, index) {
    const place = this.at[number][level] && this.at[number][level][index];
    return place ? [this.x(place[0]), this.y(place[1])] : null;
  }

  ends(view, flows, i) {
    const from = this.point(0, view.rowLevel, flows.row[i]);
    const to = this.point(1, view.columnLevel, flows.column[i]);
    return from && to ? [from, to] : null;
  }

  draw(view, flows, i, largest, isWithin) {
    const { explorer } = this;
    const [from, to] = this.ends(view, flows, i);
    const value = flows.value[i];
    const share = Math.sqrt(Math.abs(value) / largest);
    const areas = view.areas(flows.row[i], flows.column[i]);
    const grade = explorer.shade(view, value, flows.truth ? flows.truth[i] : 0, largest, areas) ?? 2;
    const row = { level: view.rowLevel, index: flows.row[i] };
    const column = { level: view.columnLevel, index: flows.column[i] };
    const handlers = {
      onclick: () => explorer.go({ row, column }),
      onmouseenter: () => explorer.say(row, column, { value, truth: flows.truth ? flows.truth[i] : 0 }),
    };
    if (isWithin) {
      return s('circle', {
        class: `place p${grade}`, cx: from[0].toFixed(1), cy: from[1].toFixed(1), r: (2 + 20 * share).toFixed(1),
        ...handlers,
      });
    }
    const middle = [(from[0] + to[0]) / 2, (from[1] + to[1]) / 2];
    const bend = [middle[0] - 0.18 * (to[1] - from[1]), middle[1] + 0.18 * (to[0] - from[0])];
    const d = `M${from.map((v) => v.toFixed(1))}Q${bend.map((v) => v.toFixed(1))} ${to.map((v) => v.toFixed(1))}`;
    return s('path', {
      class: `flow f${grade}`, d, 'stroke-width': (0.8 + 9 * share).toFixed(2),
      opacity: (0.45 + 0.5 * share).toFixed(2), ...handlers,
    });
  }

  ground(view) {
    const { model } = this.explorer;
    const out = [];
    if (model.shapes) {
      const { axis, level, rings } = model.shapes;
      const focuses = model.header.shared ? [view.row, view.column] : [axis === 0 ? view.row : view.column];
      const near = focuses.map((focus) => model.axes[axis].inside(focus, model.axes[axis].depth));
      const span = model.axes[axis].spans[level];
      const land = [];
      const inside = [];
      for (const { area, points } of rings) {
        const path = this.outline(points);
        if (!path) continue;
        const isInside = near.some(([first, last]) => span[area] < last && span[area + 1] > first);
        (isInside ? inside : land).push(path);
      }
      out.push(s('path', { class: 'land', d: land.join('') }), s('path', { class: 'inside', d: inside.join('') }));
      return out;
    }
    const dots = ['', ''];
    model.places.forEach((places, number) => {
      if (!places || (number === 1 && model.header.shared)) return;
      const focus = number === 0 ? view.row : view.column;
      const other = model.header.shared ? view.column : focus;
      const near = [focus, other].map((at) => model.axes[number].inside(at, model.axes[number].depth));
      for (let leaf = 0; leaf < places.lon.length; leaf += 1) {
        if (Number.isNaN(places.lon[leaf])) continue;
        const x = this.x(places.lon[leaf]);
        const y = this.y(places.lat[leaf]);
        if (x < 0 || y < 0 || x > this.width || y > this.height) continue;
        const isNear = near.some(([first, last]) => leaf >= first && leaf < last);
        dots[isNear ? 1 : 0] += `M${x.toFixed(1)} ${y.toFixed(1)}h0`;
      }
    });
    return [s('path', { class: 'dots', d: dots[0] }), s('path', { class: 'dots within', d: dots[1] })];
  }

  /* A ring in the drawing; nothing if it lies outside, and no points closer than a pixel. */
  outline(points) {
    let text = '';
    let isSeen = false;
    let lastX = NaN;
    let lastY = NaN;
    for (let i = 0; i < points.length; i += 2) {
      const x = this.x(points[i]);
      const y = this.y(points[i + 1]);
      if (x > -50 && y > -50 && x < this.width + 50 && y < this.height + 50) isSeen = true;
      if (Math.abs(x - lastX) < 0.7 && Math.abs(y - lastY) < 0.7) continue;
      text += `${text ? 'L' : 'M'}${x.toFixed(1)} ${y.toFixed(1)}`;
      lastX = x;
      lastY = y;
    }
    return isSeen ? text + 'Z' : '';
  }

  labels(view, flows, top) {
    const { model } = this.explorer;
    const sums = new Map();
    const add = (number, level, index, value) => {
      const key = [model.header.shared ? 0 : number, level, index].join();
      const entry = sums.get(key) ?? { number, level, index, sum: 0 };
      entry.sum += Math.abs(value);
      sums.set(key, entry);
    };
    for (const i of top) {
      add(0, view.rowLevel, flows.row[i], flows.value[i]);
      add(1, view.columnLevel, flows.column[i], flows.value[i]);
    }
    const taken = [];
    const out = [];
    for (const { number, level, index } of [...sums.values()].sort((a, b) => b.sum - a.sum)) {
      if (out.length >= MAP_LABELS) break;
      const [x, y] = this.point(number, level, index);
      const name = model.axes[number].label(level, index);
      const half = 3.4 * name.length;
      const box = [x - half, y - 20, x + half, y - 4];
      if (box[0] < 2 || box[2] > this.width - 2 || box[1] < 2) continue;
      if (taken.some((b) => box[0] < b[2] && b[0] < box[2] && box[1] < b[3] && b[1] < box[3])) continue;
      taken.push(box);
      out.push(s('text', { x: x.toFixed(1), y: (y - 8).toFixed(1), 'text-anchor': 'middle' }, name));
    }
    return out;
  }
}
