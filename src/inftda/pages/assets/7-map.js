/* The map: areas shaded by where trips start or end, flows as curves that fade on their way. */

const MAP_FLOWS = 150;
const MAP_CIRCLES = 40;
/* Room of a label: as many as this fits into the map are drawn. */
const LABEL_ROOM = 26000;
const MAP_SHADES = 5;
const MOST_ZOOM = 64;

/* Outlines of areas, as published by the custodian, coarse enough for a page. */
class Shapes {
  constructor({ axis, level, areas, scale }, numbers) {
    this.axis = axis;
    this.level = level;
    /* Rings by area: the inner ones are holes in the others. */
    this.rings = new Map();
    let at = 0;
    for (const area of areas) {
      const size = numbers[at++];
      const points = new Float64Array(2 * size);
      const box = emptyBox();
      let [x, y] = [0, 0];
      for (let i = 0; i < points.length; i += 2) {
        x += numbers[at++] / scale;
        y += numbers[at++] / scale;
        points[i] = x;
        points[i + 1] = y;
        extend(box, x, y);
      }
      if (!this.rings.has(area)) this.rings.set(area, []);
      this.rings.get(area).push({ points, box });
    }
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

class Chart {
  constructor(explorer) {
    this.explorer = explorer;
    this.model = explorer.model;
    this.direction = this.model.places[0] ? 'out' : 'in';
    this.picked = null;
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
      onpointerup: (event) => this.release(event),
    });
    this.pen = this.canvas.getContext('2d');
    this.box = h('div', { class: 'map' }, this.canvas, h('div', { class: 'zooms' },
      h('button', { class: 'action', type: 'button', id: 'closer', 'aria-label': 'Closer', onclick: () => this.scaleBy(1.7) }, '+'),
      h('button', { class: 'action', type: 'button', id: 'further', 'aria-label': 'Further away', onclick: () => this.scaleBy(1 / 1.7) }, '−')));
    const { units } = model.words;
    const ends = [['out', `${units} from there`], ['in', `${units} to there`]]
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
    this.top = new Top(this.explorer);
    this.node = h('div', {}, h('div', { class: 'beside' }, this.box, this.top.node),
      this.legend, h('div', { class: 'bar' }, h('label', {}, h('span', {}, 'Areas by'), this.select), this.finder.node, this.all), this.note);
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
      const isKept = this.model.isShared && this.view.rowLevel === this.view.columnLevel;
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
    const { flows, picked } = this;
    this.shaded = picked ? 1 - this.side : this.side;
    this.totals = new Float64Array(this.model.axes[this.shaded].size(this.levelOf(this.shaded)));
    const ends = [flows.row, flows.column];
    this.wanted = this.explorer.order(flows).filter((i) => !picked || ends[picked.number][i] === picked.index);
    /* Trips of each area at either end, for the labels. */
    this.weights = new Map();
    for (const i of this.wanted) {
      this.totals[ends[this.shaded][i]] += flows.value[i];
      for (const number of [0, 1]) {
        const [level, index] = [this.levelOf(number), ends[number][i]];
        const key = [this.model.isShared ? 0 : number, level, index].join();
        const entry = this.weights.get(key) ?? { number, level, index, sum: 0 };
        entry.sum += Math.abs(flows.value[i]);
        this.weights.set(key, entry);
      }
    }
    if (!picked && !this.explorer.leavesOutWithin) this.useTotals();
    this.limits = this.direction === 'none' && !picked ? [] : classesOf(this.totals);
  }

  /* All trips of an area are the total that is published. */
  useTotals() {
    const ends = [this.view.row, this.view.column];
    const level = this.levelOf(this.shaded);
    const [first, last] = this.model.axes[this.shaded].inside(ends[this.shaded], level);
    for (let index = first; index < last; index += 1) {
      ends[this.shaded] = { level, index };
      this.totals[index] = this.explorer.total(...ends, this.totals[index]);
    }
  }

  redraw() {
    if (!this.view || !this.node.isConnected) return;
    this.project();
    const style = getComputedStyle(document.documentElement);
    this.colour = (name) => style.getPropertyValue('--' + name).trim();
    this.density = Math.min(2, window.devicePixelRatio || 1);
    const { pen, canvas } = this;
    canvas.width = Math.round(this.width * this.density);
    canvas.height = Math.round(this.height * this.density);
    canvas.style.height = this.height + 'px';
    pen.setTransform(this.density, 0, 0, this.density, 0, 0);
    pen.lineJoin = 'round';
    pen.fillStyle = this.colour('panel');
    pen.fillRect(0, 0, this.width, this.height);
    this.drawAreas(pen);
    this.drawFlows(pen);
    this.drawPicked(pen);
    const labels = this.drawLabels(pen);
    const words = `Map of the ${whole(this.curves.length)} largest flows in view; the list has the same numbers.`;
    canvas.setAttribute('aria-label', labels.length ? `${words} Labelled: ${labels.join(', ')}` : words);
  }

  /* Fit the areas in view into the drawing; degrees of longitude shrink with latitude. */
  project() {
    const { model } = this;
    const { shapes } = model;
    const box = emptyBox();
    [0, 1].forEach((number) => {
      if (!model.places[number]) return;
      const axis = model.axes[number];
      const [first, last] = axis.inside(this.focusOf(number), axis.depth);
      for (const place of model.places[number][axis.depth].slice(first, last)) if (place) extend(box, ...place);
      if (!this.isOutlined(number)) return;
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
    const width = Math.max(300, this.box.clientWidth || 900);
    /* As high as the screen has room below it, so that all of it is seen at first. */
    if (width !== this.width) this.room = Math.max(340, innerHeight - this.box.getBoundingClientRect().top - scrollY - 12);
    this.width = width;
    this.height = Math.round(Math.min(Math.max(this.width * spanY / spanX, this.width * 0.5), this.width < 600 ? 520 : 720, this.room));
    /* Of lines and dots: a small map has thin ones, and fewer. */
    this.thick = Math.min(1, Math.max(0.5, this.width / 800));
    const margin = shapes ? 14 : 40 * this.thick;
    const scale = this.zoom * Math.min((this.width - 2 * margin) / spanX, (this.height - 2 * margin) / spanY);
    const middle = [(box[0] + box[2]) / 2, (box[1] + box[3]) / 2];
    const [left, top] = [this.width / 2 + this.shift[0], this.height / 2 + this.shift[1]];
    this.x = (lon) => left + (lon - middle[0]) * squeeze * scale;
    this.y = (lat) => top - (lat - middle[1]) * scale;
  }

  isSeen(x, y, margin = 0) {
    return x > -margin && y > -margin && x < this.width + margin && y < this.height + margin;
  }

  point(number, level, index) {
    const place = this.model.places[number]?.[level][index];
    return place ? [this.x(place[0]), this.y(place[1])] : null;
  }

  /* Are the outlines those of this end? */
  isOutlined(number) {
    const { shapes, header } = this.model;
    return Boolean(shapes) && (header.shared || shapes.axis === number);
  }

  /* Every area of the level in view is a path: its outline if there is one, else a dot. */
  drawAreas(pen) {
    const { model, shaded } = this;
    const level = this.levelOf(shaded);
    const axis = model.axes[shaded];
    const isOutlined = this.isOutlined(shaded) && model.shapes.level >= level;
    this.areas = new Map();
    pen.lineWidth = 0.7;
    for (const [area, rings] of model.shapes?.rings ?? []) {
      const index = isOutlined ? axis.above[level][axis.spans[model.shapes.level][area]] : -1;
      const isArea = index >= 0 && this.isInView({ number: shaded, level, index });
      const path = (isArea && this.areas.get(index)) || new Path2D();
      this.outline(path, rings);
      if (isArea) this.areas.set(index, path);
      else this.fill(pen, path, 'map-land', 'map-line');
    }
    if (!isOutlined) this.addDots(axis, level);
    /* Outlines finer than the areas in view would be in the way. */
    const isMerged = isOutlined && model.shapes.level > level;
    for (const [index, path] of this.areas) {
      const colour = this.limits.length && this.totals[index] > 0 ? 'm' + this.classOf(this.totals[index]) : 'map-focus';
      this.fill(pen, path, colour, isMerged ? colour : 'map-line');
    }
  }

  /* Dots grow with their totals; large ones are drawn first. */
  addDots(axis, level) {
    const { totals } = this;
    const largest = totals.reduce((most, total) => Math.max(most, total), 1);
    const [first, last] = axis.inside(this.focusOf(this.shaded), level);
    const order = Array.from({ length: last - first }, (_, i) => first + i).sort((a, b) => totals[b] - totals[a]);
    for (const index of order) {
      const at = this.point(this.shaded, level, index);
      if (!at || !this.isSeen(...at, 30)) continue;
      const path = new Path2D();
      const size = this.limits.length ? Math.sqrt(Math.max(totals[index], 0) / largest) : 0;
      path.arc(...at, this.thick * (2.5 + 14 * size), 0, 7);
      this.areas.set(index, path);
    }
  }

  classOf(value) { return this.limits.filter((least) => value >= least).length; }

  fill(pen, path, inside, border) {
    pen.fillStyle = this.colour(inside);
    pen.strokeStyle = this.colour(border);
    pen.fill(path, 'evenodd');
    pen.stroke(path);
  }

  /* Add rings that are seen to a path, without points closer than half a pixel. */
  outline(path, rings) {
    for (const { points, box } of rings) {
      if (this.x(box[2]) < 0 || this.y(box[1]) < 0 || this.x(box[0]) > this.width || this.y(box[3]) > this.height) continue;
      let [lastX, lastY] = [NaN, NaN];
      for (let i = 0; i < points.length; i += 2) {
        const [x, y] = [this.x(points[i]), this.y(points[i + 1])];
        if (i === 0) path.moveTo(x, y);
        else if (Math.abs(x - lastX) < 0.5 && Math.abs(y - lastY) < 0.5) continue;
        else path.lineTo(x, y);
        [lastX, lastY] = [x, y];
      }
      path.closePath();
    }
  }

  /* The largest flows between areas as curves, and those within areas as rings. */
  drawFlows(pen) {
    const { flows, view } = this;
    const kinds = [MAP_FLOWS, MAP_CIRCLES].map((most) => ({ room: Math.round(most * this.thick), drawn: [] }));
    this.missing = 0;
    for (const i of this.wanted) {
      if (this.model.mayBeZero(view.levels, flows.value[i], view.areas(flows.row[i], flows.column[i]))) continue;
      const from = this.point(0, view.rowLevel, flows.row[i]);
      const to = this.point(1, view.columnLevel, flows.column[i]);
      if (!from || !to) { this.missing += 1; continue; }
      const isWithin = Math.hypot(from[0] - to[0], from[1] - to[1]) < 1;
      const { room, drawn } = kinds[Number(isWithin)];
      if (drawn.length < room) drawn.push({ i, from, to, isWithin });
      if (kinds.every((kind) => kind.drawn.length === kind.room)) break;
    }
    /* Flows within areas are far larger than those between: each kind has its own scale, but a few
       stray trips between areas must not look like a stream. */
    const most = kinds.map(({ drawn }) => drawn.reduce((top, { i }) => Math.max(top, Math.abs(flows.value[i])), 1));
    most[0] = Math.max(most[0], most[1] / 200);
    const listed = kinds[0].drawn.length ? kinds[0].drawn : kinds[1].drawn;
    this.top.show(view, flows, listed.map(({ i }) => i), listed === kinds[1].drawn);
    this.curves = [];
    /* Small ones first, so that large ones lie on top. */
    for (const flow of [...kinds[1].drawn.reverse(), ...kinds[0].drawn.reverse()]) {
      this.drawFlow(pen, flow, most[Number(flow.isWithin)]);
    }
  }

  drawFlow(pen, { i, from, to, isWithin }, most) {
    const { flows, view } = this;
    const size = Math.sqrt(Math.abs(flows.value[i]) / most);
    const grade = this.explorer.shade(this.explorer.shading, view, flows.value[i], flows.truth?.[i] ?? 0, most, view.areas(flows.row[i], flows.column[i])) ?? 2;
    const colour = this.colour(grade === GRADES.length ? 'line-strong' : 'r' + grade);
    const path = new Path2D();
    let [width, ink] = [2 * this.thick, colour];
    if (isWithin) path.arc(...from, this.thick * (2 + 9 * size), 0, 7);
    else {
      /* A curve bends to the right of its way, and fades towards its end. */
      path.moveTo(...from);
      path.quadraticCurveTo((from[0] + to[0]) / 2 - 0.18 * (to[1] - from[1]), (from[1] + to[1]) / 2 + 0.18 * (to[0] - from[0]), ...to);
      width = this.thick * (1 + 7 * size);
      ink = pen.createLinearGradient(...from, ...to);
      ink.addColorStop(0, colour);
      ink.addColorStop(1, colour + '40');
    }
    pen.lineWidth = width;
    pen.strokeStyle = ink;
    pen.stroke(path);
    this.curves.push({ i, path, width, isWithin });
  }

  drawPicked(pen) {
    const at = this.picked && this.point(this.picked.number, this.picked.level, this.picked.index);
    if (!at) return;
    const path = new Path2D();
    path.arc(...at, 6, 0, 7);
    pen.lineWidth = 2.5;
    this.fill(pen, path, 'page', 'ink');
  }

  /* Areas by their trips, most first. Two hierarchies may have a place each: it is there once. */
  places() {
    const { model } = this;
    const found = new Map();
    for (const entry of this.weights.values()) {
      const { number, level, index, sum } = entry;
      const key = [model.axes[number].nameOf(level, index), model.places[number]?.[level][index]].join();
      if (found.has(key)) found.get(key).sum += sum;
      else found.set(key, { ...entry });
    }
    return [...found.values()].sort((a, b) => b.sum - a.sum);
  }

  /* Names of the areas with most trips, none over another; returns those that found room. */
  drawLabels(pen) {
    pen.font = `600 12px ${this.colour('sans')}`;
    pen.textAlign = 'center';
    pen.textBaseline = 'middle';
    pen.lineWidth = 3.5;
    pen.strokeStyle = this.colour('page');
    pen.fillStyle = this.colour('ink');
    const taken = [];
    const names = [];
    for (const { number, level, index } of this.places()) {
      if (names.length * LABEL_ROOM >= this.width * this.height) break;
      const at = this.point(number, level, index);
      if (!at || !this.isSeen(...at)) continue;
      const name = this.model.axes[number].label(level, index);
      const half = pen.measureText(name).width / 2 + 6;
      const boxes = [-13, 13, 0].map((dy) => [at[0] - half, at[1] + dy - 11, at[0] + half, at[1] + dy + 11]);
      const free = boxes.find((box) => box[0] > 2 && box[1] > 2 && box[2] < this.width - 2 && box[3] < this.height - 2
        && !taken.some((b) => box[0] < b[2] && b[0] < box[2] && box[1] < b[3] && b[1] < box[3]));
      if (!free) continue;
      taken.push(free);
      names.push(name);
      pen.strokeText(name, at[0], free[1] + 11);
      pen.fillText(name, at[0], free[1] + 11);
    }
    return names;
  }

  explain() {
    const { view, picked, model } = this;
    const range = this.limits.map((least, i) => h('li', {}, h('span', { class: 'swatch m' + (i + 1) }),
      i + 1 < this.limits.length ? `from ${whole(least)}` : `${whole(least)} and more`));
    const name = picked && model.axes[picked.number].label(picked.level, picked.index);
    const { unit } = model.words;
    const title = picked ? `${unit} ${this.side === 0 ? 'from' : 'to'} ${name}:`
      : `${unit} ${this.direction === 'in' ? 'to' : 'from'} an area:`;
    this.legend.replaceChildren(...(range.length ? [h('li', {}, title), ...range] : []));
    const sure = model.isConfidential || !model.hasIntervals(view.levels) ? '' : '; those that may be zero (grade D) are left out';
    this.note.textContent = `The ${whole(this.curves?.length ?? 0)} largest of ${whole(this.wanted.length)} flows${sure}. `
      + 'A curve is dark where it starts and fades where it ends; a ring is a flow within an area, on a scale of its own. '
      + 'Click an area to see only what is its own.'
      + (model.adviceOf(view.levels) ? ` ${model.adviceOf(view.levels)}` : '')
      + (this.missing ? ` ${whole(this.missing)} larger ones have an end without a place on the map.` : '');
    if (!picked) return;
    const sum = (values) => this.wanted.reduce((total, i) => total + (values?.[i] ?? 0), 0);
    const area = { level: picked.level, index: picked.index };
    this.explorer.say(...(picked.number === 0 ? [area, view.column] : [view.row, area]),
      { value: sum(this.flows.value), truth: sum(this.flows.truth) });
  }

  /* The area that is drawn under a point, or close to it; of dots the one on top. */
  areaAt(x, y) {
    const { pen } = this;
    const [number, level] = [this.side, this.levelOf(this.side)];
    /* Both ends are the same areas, or only one of them can be clicked. */
    if (this.shaded !== number && !(this.model.isShared && this.levelOf(this.shaded) === level)) return null;
    const at = [x * this.density, y * this.density];
    const areas = [...this.areas];
    pen.lineWidth = 16;
    const found = areas.findLast(([, path]) => pen.isPointInPath(path, ...at, 'evenodd'))
      ?? areas.findLast(([, path]) => pen.isPointInStroke(path, ...at));
    return found ? { number, level, index: found[0] } : null;
  }

  curveAt(x, y) {
    const { pen } = this;
    return this.curves.findLast(({ path, width }) => {
      pen.lineWidth = width + 6;
      return pen.isPointInStroke(path, x * this.density, y * this.density);
    });
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
    this.canvas.style.cursor = curve || this.areaAt(x, y) ? 'pointer' : 'default';
    if (curve && this.pointed !== curve) this.sayCurve(curve);
    this.pointed = curve;
  }

  /* At most one drawing for each frame of the screen. */
  later() {
    if (this.isWaiting) return;
    this.isWaiting = true;
    requestAnimationFrame(() => { this.isWaiting = false; this.redraw(); });
  }

  sayCurve({ i }) {
    const { view, flows } = this;
    this.explorer.say({ level: view.rowLevel, index: flows.row[i] }, { level: view.columnLevel, index: flows.column[i] },
      { value: flows.value[i], truth: flows.truth?.[i] ?? 0 });
  }

  release(event) {
    const isMoved = this.drag?.moved;
    this.drag = null;
    if (isMoved) return;
    const [x, y] = this.place(event);
    const curve = this.curveAt(x, y);
    if (curve && !curve.isWithin) this.sayCurve(curve);
    else this.pick(this.areaAt(x, y));
  }

  /* See the trips of one area only, or of all. */
  pick(area) {
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
