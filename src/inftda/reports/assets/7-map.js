/* The map: areas shaded by where trips start or end, flows as curves that taper on their way. */

const MAP_FLOWS = 150;
const MAP_CIRCLES = 40;
/* Room of a label: as many as this fits into the map are drawn. */
const LABEL_ROOM = 26000;
const CURVE_STEPS = 18;
const MAP_SHADES = 5;
const MOST_ZOOM = 64;

/* Outlines of areas, as published by the custodian, coarse enough for a page. */
class Shapes {
  constructor({ axis, level, n, areas, scale }, section) {
    this.axis = axis;
    this.level = level;
    const numbers = readSigned(section('shapes'), n);
    /* Rings by area: the inner ones are holes in the others. */
    this.rings = new Map();
    this.box = emptyBox();
    let at = 0;
    for (const area of areas) {
      const size = numbers[at++];
      const points = new Float64Array(2 * size);
      const box = emptyBox();
      let x = 0;
      let y = 0;
      for (let i = 0; i < size; i += 1) {
        x += numbers[at++];
        y += numbers[at++];
        points[2 * i] = x / scale;
        points[2 * i + 1] = y / scale;
        extend(box, x / scale, y / scale);
      }
      if (!this.rings.has(area)) this.rings.set(area, []);
      this.rings.get(area).push({ points, box });
    }
  }

  /* The area that holds a place; -1 if none does. */
  areaAt(lon, lat) {
    for (const [area, rings] of this.rings) {
      let isInside = false;
      for (const { points, box } of rings) {
        if (lon < box[0] || lat < box[1] || lon > box[2] || lat > box[3]) continue;
        for (let i = 0, j = points.length - 2; i < points.length; j = i, i += 2) {
          if ((points[i + 1] > lat) !== (points[j + 1] > lat)
            && lon < (points[j] - points[i]) * (lat - points[i + 1]) / (points[j + 1] - points[i + 1]) + points[i]) {
            isInside = !isInside;
          }
        }
      }
      if (isInside) return area;
    }
    return -1;
  }
}

const emptyBox = () => [Infinity, Infinity, -Infinity, -Infinity];

function extend(box, x, y) {
  box[0] = Math.min(box[0], x);
  box[1] = Math.min(box[1], y);
  box[2] = Math.max(box[2], x);
  box[3] = Math.max(box[3], y);
}

/* Values in classes that hold about as many areas each: limits[i] is the least of class i. */
function classesOf(values) {
  const sorted = Float64Array.from(values).filter((value) => value > 0).sort();
  const limits = Array.from({ length: MAP_SHADES }, (_, i) => sorted[Math.floor(sorted.length * i / MAP_SHADES)]);
  return [...new Set(limits)].filter((value) => value !== undefined);
}

/* A curve that bends to the right of its way: points, and how wide it is at each. */
function curveOf(from, to, width) {
  const bend = [(from[0] + to[0]) / 2 - 0.18 * (to[1] - from[1]), (from[1] + to[1]) / 2 + 0.18 * (to[0] - from[0])];
  return Array.from({ length: CURVE_STEPS + 1 }, (_, k) => {
    const t = k / CURVE_STEPS;
    const [a, b, c] = [(1 - t) ** 2, 2 * t * (1 - t), t * t];
    const along = [0, 1].map((i) => 2 * (1 - t) * (bend[i] - from[i]) + 2 * t * (to[i] - bend[i]));
    const length = Math.hypot(...along) || 1;
    return {
      x: a * from[0] + b * bend[0] + c * to[0], y: a * from[1] + b * bend[1] + c * to[1],
      nx: -along[1] / length, ny: along[0] / length, half: width * (1 - 0.85 * t) / 2,
    };
  });
}

class Chart {
  constructor(explorer) {
    this.explorer = explorer;
    this.model = explorer.model;
    this.direction = this.model.places[0] ? 'out' : 'in';
    this.picked = null;
    this.locate();
    this.build();
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.redraw());
    new ResizeObserver(() => {
      if (this.view && this.node.isConnected && this.box.clientWidth !== this.width) this.redraw();
    }).observe(this.box);
  }

  build() {
    const { model } = this;
    this.canvas = h('canvas', {
      role: 'img', onpointerdown: (event) => this.press(event), onpointermove: (event) => this.hover(event),
      onpointerup: (event) => this.release(event), onpointerleave: () => { this.at = null; this.paint(); },
    });
    this.box = h('div', { class: 'map' }, this.canvas, h('div', { class: 'zooms' },
      h('button', { class: 'action', type: 'button', id: 'closer', 'aria-label': 'Closer', onclick: () => this.scaleBy(1.7) }, '+'),
      h('button', { class: 'action', type: 'button', id: 'further', 'aria-label': 'Further away', onclick: () => this.scaleBy(1 / 1.7) }, '−')));
    const ends = [['out', 'trips that start there'], ['in', 'trips that end there']]
      .filter((_, number) => model.places[number]);
    this.select = h('select', { class: 'field', id: 'map-shade', onchange: () => {
      this.direction = this.select.value;
      this.refresh();
    } }, [...ends, ['none', 'nothing']].map(([value, text]) => h('option', { value }, text)));
    const number = model.places[0] ? 0 : 1;
    this.finder = new Finder(model.axes[number], (area) => this.find(number, area));
    this.all = h('button', { class: 'action', type: 'button', id: 'map-all', onclick: () => this.pick(null) }, 'Show all areas');
    this.legend = h('ul', { class: 'legend', 'aria-label': 'What the colours of areas mean' });
    this.note = h('p', { class: 'note' });
    this.node = h('div', {}, h('div', { class: 'bar' }, h('label', {}, h('span', {}, 'Areas by'), this.select),
      this.finder.node, this.all), this.box, this.legend, this.note);
  }

  /* Places of all levels: the mean of the finest, weighted by their flows. */
  locate() {
    const { model } = this;
    const weight = [0, 1].map((number) => {
      const axis = model.axes[number];
      return axis && model.totals(number, axis.depth).value;
    });
    if (model.header.shared) weight[0] = weight[1] = weight[0].map((value, i) => Math.abs(value) + Math.abs(weight[1][i]));
    this.points = [0, 1].map((number) => model.axes[number].spans.map((span) => {
      const places = model.places[number];
      if (!places) return null;
      return Array.from({ length: span.length - 1 }, (_, i) => {
        let [lon, lat, sum] = [0, 0, 0];
        for (let leaf = span[i]; leaf < span[i + 1]; leaf += 1) {
          if (Number.isNaN(places.lon[leaf])) continue;
          const mass = Math.abs(weight[number][leaf]) + 1e-6;
          lon += mass * places.lon[leaf];
          lat += mass * places.lat[leaf];
          sum += mass;
        }
        return sum ? [lon / sum, lat / sum] : null;
      });
    }));
  }

  show(view, flows) {
    const { picked } = this;
    const isNew = this.view?.address !== view.address;
    this.view = view;
    this.flows = flows;
    if (isNew) { this.zoom = 1; this.shift = [0, 0]; }
    if (isNew && picked && (picked.level !== this.levelOf(picked.number) || !this.isInView(picked))) this.picked = null;
    this.refresh();
  }

  levelOf(number) { return number === 0 ? this.view.rowLevel : this.view.columnLevel; }

  focusOf(number) { return number === 0 ? this.view.row : this.view.column; }

  isInView({ number, level, index }) {
    const [first, last] = this.model.axes[number].inside(this.focusOf(number), level);
    return index >= first && index < last;
  }

  /* Which end is picked from: where trips start, or where they end. */
  get side() { return this.direction === 'in' ? 1 : 0; }

  refresh() {
    if (this.picked && this.picked.number !== this.side) {
      const isKept = this.model.header.shared && this.view.rowLevel === this.view.columnLevel;
      this.picked = isKept ? { ...this.picked, number: this.side } : null;
    }
    this.select.value = this.direction;
    this.all.classList.toggle('hidden', !this.picked);
    this.finder.clear();
    this.sums();
    this.redraw();
    this.explain();
  }

  /* What areas are shaded by: all trips, or those of the one that is picked. */
  sums() {
    const { flows, picked, view } = this;
    this.shaded = picked ? 1 - this.side : this.side;
    const level = this.levelOf(this.shaded);
    this.totals = new Float64Array(this.model.axes[this.shaded].size(level));
    const ends = [flows.row, flows.column];
    this.wanted = [];
    for (const i of this.explorer.order(flows)) {
      if (picked && ends[picked.number][i] !== picked.index) continue;
      this.totals[ends[this.shaded][i]] += flows.value[i];
      this.wanted.push(i);
    }
    this.limits = this.direction === 'none' && !picked ? [] : classesOf(this.totals);
    this.weights = new Map();
    for (const i of this.wanted) {
      [[0, view.rowLevel], [1, view.columnLevel]].forEach(([number, at]) => {
        const key = [this.model.header.shared ? 0 : number, at, ends[number][i]].join();
        const entry = this.weights.get(key) ?? { number, level: at, index: ends[number][i], sum: 0 };
        entry.sum += Math.abs(flows.value[i]);
        this.weights.set(key, entry);
      });
    }
  }

  classOf(value) {
    let found = 0;
    while (found < this.limits.length && value >= this.limits[found]) found += 1;
    return value > 0 ? found : 0;
  }

  redraw() {
    if (!this.view || !this.node.isConnected) return;
    this.project();
    const style = getComputedStyle(document.documentElement);
    const known = new Map();
    this.colour = (name) => {
      if (!known.has(name)) known.set(name, style.getPropertyValue('--' + name).trim());
      return known.get(name);
    };
    this.font = style.getPropertyValue('--sans') || 'sans-serif';
    const density = Math.min(2, window.devicePixelRatio || 1);
    for (const canvas of [this.canvas, this.ground ??= document.createElement('canvas')]) {
      canvas.width = Math.round(this.width * density);
      canvas.height = Math.round(this.height * density);
      canvas.getContext('2d').setTransform(density, 0, 0, density, 0, 0);
    }
    this.canvas.style.height = this.height + 'px';
    const pen = this.ground.getContext('2d');
    pen.fillStyle = this.colour('panel');
    pen.fillRect(0, 0, this.width, this.height);
    if (this.model.shapes) this.drawShapes(pen);
    else this.drawDots(pen);
    this.drawFlows(pen);
    this.drawPicked(pen);
    const labels = this.drawLabels(pen);
    const words = `Map of the ${whole(this.curves.length)} largest flows in view; the list has the same numbers.`;
    this.canvas.setAttribute('aria-label', labels.length ? `${words} Labelled: ${labels.join(', ')}` : words);
    this.paint();
  }

  /* What was drawn, and what is pointed at. */
  paint() {
    const pen = this.canvas.getContext('2d');
    if (!this.ground?.width) return;
    pen.drawImage(this.ground, 0, 0, this.width, this.height);
    if (!this.at?.curve) return;
    pen.strokeStyle = this.colour('ink');
    pen.lineWidth = 1.5;
    pen.stroke(this.at.curve.path);
  }

  /* Fit the areas in view into the drawing; degrees of longitude shrink with latitude. */
  project() {
    const { model } = this;
    const box = emptyBox();
    const { shapes } = model;
    [0, 1].forEach((number) => {
      const places = model.places[number];
      if (!places) return;
      const axis = model.axes[number];
      const [first, last] = axis.inside(this.focusOf(number), axis.depth);
      for (let leaf = first; leaf < last; leaf += 1) {
        if (!Number.isNaN(places.lon[leaf])) extend(box, places.lon[leaf], places.lat[leaf]);
      }
      if (!shapes || !(model.header.shared || shapes.axis === number)) return;
      const span = axis.spans[shapes.level];
      for (const [area, rings] of shapes.rings) {
        if (span[area] >= last || span[area + 1] <= first) continue;
        for (const ring of rings) { extend(box, ring.box[0], ring.box[1]); extend(box, ring.box[2], ring.box[3]); }
      }
    });
    if (box[0] === Infinity) box.splice(0, 4, 0, 0, 1, 1);
    const squeeze = Math.max(0.05, Math.cos((box[1] + box[3]) / 2 * Math.PI / 180));
    const spanX = Math.max((box[2] - box[0]) * squeeze, 0.02);
    const spanY = Math.max(box[3] - box[1], 0.02);
    this.width = Math.max(300, this.box.clientWidth || 900);
    this.height = Math.round(Math.min(Math.max(this.width * spanY / spanX, this.width * 0.5), this.width < 600 ? 520 : 720));
    const margin = shapes ? 14 : 40;
    const scale = this.zoom * Math.min((this.width - 2 * margin) / spanX, (this.height - 2 * margin) / spanY);
    const middle = [(box[0] + box[2]) / 2, (box[1] + box[3]) / 2];
    const [left, top] = [this.width / 2 + this.shift[0], this.height / 2 + this.shift[1]];
    this.x = (lon) => left + (lon - middle[0]) * squeeze * scale;
    this.y = (lat) => top - (lat - middle[1]) * scale;
    this.lon = (x) => middle[0] + (x - left) / (squeeze * scale);
    this.lat = (y) => middle[1] - (y - top) / scale;
  }

  isSeen(x, y, margin = 0) {
    return x > -margin && y > -margin && x < this.width + margin && y < this.height + margin;
  }

  point(number, level, index) {
    const place = this.points[number][level] && this.points[number][level][index];
    return place ? [this.x(place[0]), this.y(place[1])] : null;
  }

  /* Total of an area of the outlines, summed up or looked up at the level in view; null outside. */
  shapeTotal(area) {
    const { shapes } = this.model;
    const axis = this.model.axes[this.shaded];
    const level = this.levelOf(this.shaded);
    const [first, last] = axis.inside(this.focusOf(this.shaded), axis.depth);
    const span = axis.spans[shapes.level];
    if (span[area] >= last || span[area + 1] <= first) return null;
    if (shapes.level >= level) return this.totals[axis.above[level][span[area]]];
    const [from, to] = axis.inside({ level: shapes.level, index: area }, level);
    let sum = 0;
    for (let i = from; i < to; i += 1) sum += this.totals[i];
    return sum;
  }

  drawShapes(pen) {
    const { model } = this;
    const { shapes } = model;
    const isOurs = model.header.shared || shapes.axis === this.shaded;
    const isMerged = shapes.level > this.levelOf(this.shaded);
    pen.lineWidth = 0.7;
    pen.lineJoin = 'round';
    for (const [area, rings] of shapes.rings) {
      const path = this.outline(rings);
      if (!path) continue;
      const total = isOurs ? this.shapeTotal(area) : null;
      const name = total === null ? 'map-land' : this.limits.length && total > 0 ? 'm' + this.classOf(total) : 'map-focus';
      pen.fillStyle = this.colour(name);
      /* Finer outlines than the areas in view would be in the way. */
      pen.strokeStyle = isMerged && total !== null ? this.colour(name) : this.colour('map-line');
      pen.fill(path, 'evenodd');
      pen.stroke(path);
    }
  }

  /* Rings in the drawing; nothing if they lie outside, and no points closer than half a pixel. */
  outline(rings) {
    let path = null;
    for (const { points, box } of rings) {
      const [x0, y0, x1, y1] = [this.x(box[0]), this.y(box[3]), this.x(box[2]), this.y(box[1])];
      if (x1 < 0 || y1 < 0 || x0 > this.width || y0 > this.height) continue;
      path ??= new Path2D();
      let [lastX, lastY] = [NaN, NaN];
      for (let i = 0; i < points.length; i += 2) {
        const x = this.x(points[i]);
        const y = this.y(points[i + 1]);
        if (i === 0) path.moveTo(x, y);
        else if (Math.abs(x - lastX) < 0.5 && Math.abs(y - lastY) < 0.5) continue;
        else path.lineTo(x, y);
        [lastX, lastY] = [x, y];
      }
      path.closePath();
    }
    return path;
  }

  /* Where there are no outlines: a dot for each area, larger and stronger with its total. */
  drawDots(pen) {
    const { model } = this;
    const level = this.levelOf(this.shaded);
    [0, 1].forEach((number) => {
      const places = model.places[number];
      if (!places || (number === 1 && model.header.shared)) return;
      pen.fillStyle = this.colour('map-line');
      for (let leaf = 0; leaf < places.lon.length; leaf += 1) {
        const [x, y] = [this.x(places.lon[leaf]), this.y(places.lat[leaf])];
        if (this.isSeen(x, y)) pen.fillRect(x - 1, y - 1, 2, 2);
      }
    });
    if (!this.limits.length) return;
    const largest = this.totals.reduce((most, total) => Math.max(most, total), 1);
    const order = Array.from(this.totals.keys()).filter((i) => this.totals[i] > 0).sort((a, b) => this.totals[b] - this.totals[a]);
    pen.strokeStyle = this.colour('panel');
    pen.lineWidth = 0.6;
    for (const index of order) {
      const at = this.point(this.shaded, level, index);
      if (!at || !this.isSeen(at[0], at[1], 30)) continue;
      pen.fillStyle = this.colour('m' + this.classOf(this.totals[index]));
      pen.beginPath();
      pen.arc(at[0], at[1], 1.5 + 16 * Math.sqrt(this.totals[index] / largest), 0, 7);
      pen.fill();
      pen.stroke();
    }
  }

  drawFlows(pen) {
    const { flows, view, explorer } = this;
    const left = [MAP_FLOWS, MAP_CIRCLES];
    const kinds = [[], []];
    this.missing = 0;
    for (const i of this.wanted) {
      if (!left[0] && !left[1]) break;
      const from = this.point(0, view.rowLevel, flows.row[i]);
      const to = this.point(1, view.columnLevel, flows.column[i]);
      if (!from || !to) { this.missing += 1; continue; }
      const kind = Number(Math.hypot(from[0] - to[0], from[1] - to[1]) < 1);
      if (!left[kind]) continue;
      left[kind] -= 1;
      kinds[kind].push({ i, from, to });
    }
    /* Flows within areas are far larger than those between: each kind has its own scale, but a few
       stray trips between areas must not look like a stream. */
    const most = kinds.map((kind) => kind.reduce((top, { i }) => Math.max(top, Math.abs(flows.value[i])), 1));
    most[0] = Math.max(most[0], most[1] / 200);
    this.curves = [];
    const shadeOf = (i, largest) => explorer.shade(view, flows.value[i], flows.truth ? flows.truth[i] : 0, largest,
      view.areas(flows.row[i], flows.column[i])) ?? 2;
    /* Small ones first, so that large ones lie on top. */
    for (const { i, from } of kinds[1].reverse()) {
      const radius = 2 + 9 * Math.sqrt(Math.abs(flows.value[i]) / most[1]);
      const path = new Path2D();
      path.arc(from[0], from[1], radius, 0, 7);
      this.stroke(pen, i, path, shadeOf(i, most[1]), [{ x: from[0], y: from[1], half: radius }], true);
    }
    for (const { i, from, to } of kinds[0].reverse()) {
      const points = curveOf(from, to, 1.4 + 11 * Math.sqrt(Math.abs(flows.value[i]) / most[0]));
      const path = new Path2D();
      points.forEach(({ x, y, nx, ny, half }) => path.lineTo(x + nx * half, y + ny * half));
      [...points].reverse().forEach(({ x, y, nx, ny, half }) => path.lineTo(x - nx * half, y - ny * half));
      path.closePath();
      this.stroke(pen, i, path, shadeOf(i, most[0]), points, false);
    }
  }

  stroke(pen, i, path, grade, points, isWithin) {
    this.curves.push({ i, path, points });
    pen.save();
    pen.globalAlpha = isWithin ? 0.9 : 0.85;
    pen.strokeStyle = this.colour(grade === 5 ? 'line-strong' : 'r' + grade);
    pen.fillStyle = pen.strokeStyle;
    if (isWithin) {
      pen.lineWidth = 2;
      pen.stroke(path);
    } else {
      pen.fill(path);
      /* A rim keeps curves apart from the areas below them. */
      pen.globalAlpha = 0.6;
      pen.lineWidth = 0.6;
      pen.strokeStyle = this.colour('page');
      pen.stroke(path);
    }
    pen.restore();
  }

  drawPicked(pen) {
    if (!this.picked) return;
    const at = this.point(this.picked.number, this.picked.level, this.picked.index);
    if (!at) return;
    pen.fillStyle = this.colour('page');
    pen.strokeStyle = this.colour('ink');
    pen.lineWidth = 2.5;
    pen.beginPath();
    pen.arc(at[0], at[1], 6, 0, 7);
    pen.fill();
    pen.stroke();
  }

  /* Names of the areas with most trips, none over another; returns those that found room. */
  drawLabels(pen) {
    const { model } = this;
    pen.font = `600 12px ${this.font}`;
    pen.textAlign = 'center';
    pen.textBaseline = 'middle';
    pen.lineJoin = 'round';
    const taken = [];
    const names = [];
    const tries = [-13, 13, 0];
    for (const { number, level, index } of [...this.weights.values()].sort((a, b) => b.sum - a.sum)) {
      if (names.length * LABEL_ROOM >= this.width * this.height) break;
      const at = this.point(number, level, index);
      if (!at || !this.isSeen(...at)) continue;
      const name = model.axes[number].label(level, index);
      const half = pen.measureText(name).width / 2 + 6;
      for (const dy of tries) {
        const box = [at[0] - half, at[1] + dy - 11, at[0] + half, at[1] + dy + 11];
        if (box[0] < 2 || box[1] < 2 || box[2] > this.width - 2 || box[3] > this.height - 2) continue;
        if (taken.some((b) => box[0] < b[2] && b[0] < box[2] && box[1] < b[3] && b[1] < box[3])) continue;
        taken.push(box);
        names.push(name);
        pen.lineWidth = 3.5;
        pen.strokeStyle = this.colour('page');
        pen.strokeText(name, at[0], at[1] + dy);
        pen.fillStyle = this.colour('ink');
        pen.fillText(name, at[0], at[1] + dy);
        break;
      }
    }
    return names;
  }

  explain() {
    const { view, picked, model } = this;
    const range = this.limits.map((least, i) => h('li', {}, h('span', { class: 'swatch m' + (i + 1) }),
      i + 1 < this.limits.length ? `from ${whole(least)}` : `${whole(least)} and more`));
    const name = picked && model.axes[picked.number].label(picked.level, picked.index);
    const title = picked ? (this.side === 0 ? `Trips from ${name}:` : `Trips to ${name}:`)
      : this.direction === 'in' ? 'Trips that end in an area:' : 'Trips that start in an area:';
    this.legend.replaceChildren(...(range.length ? [h('li', {}, title), ...range] : []));
    this.note.textContent = `The ${whole(this.curves?.length ?? 0)} largest of ${whole(this.wanted.length)} flows. `
      + 'A curve is thick where trips start and thin where they end; a ring is a flow within an area, on a scale of its own. '
      + (picked ? 'Click the same area again to zoom into it.' : 'Click an area to see its trips only.')
      + (this.missing ? ` ${whole(this.missing)} larger ones have an end without a place on the map.` : '');
    if (picked) {
      let value = 0;
      let truth = 0;
      for (const i of this.wanted) {
        value += this.flows.value[i];
        if (this.flows.truth) truth += this.flows.truth[i];
      }
      const area = { level: picked.level, index: picked.index };
      this.sayArea = () => this.explorer.say(...(picked.number === 0 ? [area, view.column] : [view.row, area]), { value, truth });
    } else this.sayArea = null;
    this.sayArea?.();
  }

  /* The area of the level in view that lies under a point of the drawing. */
  areaAt(x, y) {
    const number = this.side;
    const level = this.levelOf(number);
    const axis = this.model.axes[number];
    const { shapes } = this.model;
    if (shapes && (this.model.header.shared || shapes.axis === number) && shapes.level >= level) {
      const found = shapes.areaAt(this.lon(x), this.lat(y));
      if (found < 0) return null;
      return { number, level, index: axis.above[level][axis.spans[shapes.level][found]] };
    }
    let best = 14;
    let nearest = null;
    const [first, last] = axis.inside(this.focusOf(number), level);
    for (let index = first; index < last; index += 1) {
      const at = this.point(number, level, index);
      const distance = at ? Math.hypot(at[0] - x, at[1] - y) : Infinity;
      if (distance < best) { best = distance; nearest = { number, level, index }; }
    }
    return nearest;
  }

  curveAt(x, y) {
    for (let k = this.curves.length - 1; k >= 0; k -= 1) {
      const { points } = this.curves[k];
      const isRing = points.length === 1;
      if (points.some((p) => {
        const distance = Math.hypot(p.x - x, p.y - y);
        return isRing ? Math.abs(distance - p.half) < 3 : distance < p.half + 4;
      })) return this.curves[k];
    }
    return null;
  }

  place(event) {
    const box = this.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  press(event) {
    this.drag = { from: this.place(event), shift: [...this.shift], moved: false };
    if (this.zoom > 1) this.canvas.setPointerCapture(event.pointerId);
  }

  hover(event) {
    const [x, y] = this.place(event);
    if (this.drag && this.zoom > 1) {
      const by = [x - this.drag.from[0], y - this.drag.from[1]];
      if (Math.hypot(...by) > 4) this.drag.moved = true;
      if (this.drag.moved) { this.shift = this.drag.shift.map((at, i) => at + by[i]); this.later(); }
      return;
    }
    const curve = this.curveAt(x, y);
    const isSame = this.at?.curve === curve;
    this.at = { curve };
    this.canvas.style.cursor = curve || this.areaAt(x, y) ? 'pointer' : 'default';
    if (isSame) return;
    this.paint();
    if (curve) this.sayCurve(curve.i);
  }

  /* At most one drawing for each frame of the screen. */
  later() {
    if (this.isWaiting) return;
    this.isWaiting = true;
    requestAnimationFrame(() => { this.isWaiting = false; this.redraw(); });
  }

  sayCurve(i) {
    const { view, flows } = this;
    this.explorer.say({ level: view.rowLevel, index: flows.row[i] }, { level: view.columnLevel, index: flows.column[i] },
      { value: flows.value[i], truth: flows.truth ? flows.truth[i] : 0 });
  }

  release(event) {
    const isMoved = this.drag?.moved;
    this.drag = null;
    if (isMoved) return;
    const [x, y] = this.place(event);
    const curve = this.curveAt(x, y);
    if (curve && curve.points.length > 1) { this.sayCurve(curve.i); return; }
    this.pick(this.areaAt(x, y));
  }

  /* See the trips of one area only; the same area again is zoomed into. */
  pick(area) {
    const { picked } = this;
    if (area && picked && area.number === picked.number && area.index === picked.index) {
      this.picked = null;
      this.explorer.go({ [area.number === 0 ? 'row' : 'column']: { level: area.level, index: area.index } });
      return;
    }
    if (area && !this.isInView(area)) return;
    this.picked = area;
    this.refresh();
    if (!area) this.explorer.sayWhole();
  }

  /* An area that was searched for: the one of the level in view that holds it, or a closer look. */
  find(number, { level, index }) {
    const shown = this.levelOf(number);
    const axis = this.model.axes[number];
    if (this.side !== number && this.direction !== 'none') this.direction = number === 0 ? 'out' : 'in';
    if (level < shown) this.explorer.go({ [number === 0 ? 'row' : 'column']: { level, index } });
    else this.pick({ number, level: shown, index: axis.above[shown][axis.spans[level][index]] });
  }

  scaleBy(factor) {
    const zoom = Math.min(MOST_ZOOM, Math.max(1, this.zoom * factor));
    this.shift = zoom === 1 ? [0, 0] : this.shift.map((at) => at * zoom / this.zoom);
    this.zoom = zoom;
    this.redraw();
  }
}
