/* The map: areas shaded by where trips start or end, flows as curves that fade on their way. */

import { Finder } from './ends.mjs';
import { Top } from './list.mjs';
import { Picture, boxOf } from './picture.mjs';
import { h, whole } from './tools.mjs';

const MAP_FLOWS = 150;
const MAP_CIRCLES = 40;
const MAP_SHADES = 5;

/* Values in classes that hold about as many areas each: limits[i] is the least of class i. */
export function classesOf(values) {
  const sorted = Float64Array.from(values).filter((value) => value > 0).sort();
  const limits = Array.from({ length: MAP_SHADES }, (_, i) => sorted[Math.floor(sorted.length * i / MAP_SHADES)]);
  return [...new Set(limits)].filter((value) => value !== undefined);
}

/* Areas by their trips, most first. Two hierarchies may have a place each: it is there once. */
export function byTrips(model, weights) {
  const found = new Map();
  for (const { number, level, index, sum } of weights) {
    if (!level) continue;
    const key = [model.axes[number].nameOf(level, index), model.places[number]?.[level][index]].join();
    if (!found.has(key)) found.set(key, { number, level, index, sum: 0 });
    found.get(key).sum += sum;
  }
  return [...found.values()].sort((a, b) => b.sum - a.sum);
}

export class FlowMap extends Picture {
  constructor(explorer) {
    super();
    this.explorer = explorer;
    this.model = explorer.model;
    this.margin = this.model.shapes ? 14 : 40;
    this.direction = this.model.places[0] ? 'out' : 'in';
    this.picked = null;
    this.build();
  }

  build() {
    const { model } = this;
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
    /* Without places at both ends there are areas to shade and no flows to draw. */
    this.top = model.places.every(Boolean) ? new Top(this.explorer) : null;
    this.node = h('div', {}, h('div', { class: this.top ? 'beside' : null }, this.box, this.top?.node),
      this.legend, h('div', { class: 'bar' }, h('label', {}, h('span', {}, 'Areas by'), this.select), this.finder.node, this.all), this.note);
  }

  show(view, flows) {
    const { picked } = this;
    const isNew = this.view?.address !== view.address;
    this.view = view;
    this.flows = flows;
    /* Other filters, such as another edition, are looked at from where one stands. */
    const place = [view.rowLevel, view.columnLevel, view.row.level, view.row.index, view.column.level, view.column.index].join();
    if (this.shown !== place) this.camera.reset();
    this.shown = place;
    if (isNew && picked && (picked.level !== this.levelOf(picked.number) || !this.isInView(picked))) this.picked = null;
    this.refresh();
  }

  levelOf(number) { return number === 0 ? this.view.rowLevel : this.view.columnLevel; }

  focusOf(number) { return number === 0 ? this.view.row : this.view.column; }

  isInView({ number, level, index }) {
    const [first, last] = this.model.axes[number].inside(this.focusOf(number), level);
    return index >= first && index < last;
  }

  /* Areas that are summed up at one end have totals and no flows. */
  get hasFlows() { return Boolean(this.top) && this.view.rowLevel > 0 && this.view.columnLevel > 0; }

  /* The explorer chooses the shade of flows; areas are shaded by their totals. */
  get shading() { return this.hasFlows ? null : 'none'; }

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

  /* Numbers that shade the areas: all trips, or the trips of the area that is picked. */
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
    const isBlank = this.direction === 'none' && !picked;
    this.unsure = isBlank ? new Set() : this.findUnsure();
    this.limits = isBlank ? [] : classesOf(this.totals.filter((_, index) => !this.unsure.has(index)));
  }

  /* Areas whose number has the worst grade: a shade would take noise for a place where much happens. */
  findUnsure() {
    const ends = [this.view.row, this.view.column];
    if (this.picked) ends[this.picked.number] = this.picked;
    const level = this.levelOf(this.shaded);
    const unsure = new Set();
    this.totals.forEach((total, index) => {
      if (!total) return;
      ends[this.shaded] = { level, index };
      const grade = this.model.isConfidential ? null : this.model.grade(this.view.levelsAt(...ends), total, this.view.areas(...ends.map((end) => end.index)));
      if (grade === this.model.grades.length) unsure.add(index);
    });
    return unsure;
  }

  /* All trips of an area are the total that is published. */
  useTotals() {
    const ends = [this.view.row, this.view.column];
    const level = this.levelOf(this.shaded);
    const [first, last] = this.model.axes[this.shaded].inside(ends[this.shaded], level);
    for (let index = first; index < last; index += 1) {
      ends[this.shaded] = { level, index };
      this.totals[index] = this.view.total(...ends, this.totals[index]);
    }
  }

  bounds() {
    const { places, axes, shapes } = this.model;
    const boxes = [0, 1].filter((number) => places[number]).map((number) => {
      const axis = axes[number];
      const [first, last] = axis.inside(this.focusOf(number), axis.depth);
      const span = axis.spans[shapes?.level ?? 0];
      const isIn = ([area]) => span[area] < last && span[area + 1] > first;
      const rings = this.isOutlined(number) ? [...shapes.rings].filter(isIn).flatMap(([, own]) => own) : [];
      return boxOf(places[number][axis.depth].slice(first, last), rings);
    });
    return [0, 1, 2, 3].map((i) => (i < 2 ? Math.min : Math.max)(...boxes.map((box) => box[i])));
  }

  draw() {
    this.drawAreas();
    this.drawFlows();
    this.drawPicked();
    const labels = this.drawLabels(byTrips(this.model, this.weights.values()).map(({ number, level, index }) =>
      ({ name: this.model.axes[number].label(level, index), at: this.point(number, level, index) })));
    const words = this.curves.length ? `Map of the ${whole(this.curves.length)} largest flows in view; the list has the same numbers.`
      : 'Map of areas; the list has the same numbers.';
    return labels.length ? `${words} Labelled: ${labels.join(', ')}` : words;
  }

  point(number, level, index) { return this.at(this.model.places[number]?.[level][index]); }

  /* Are the outlines those of this end? */
  isOutlined(number) {
    const { shapes, header } = this.model;
    return Boolean(shapes) && (header.shared || shapes.axis === number);
  }

  /* Every area of the level in view is a path: its outline if there is one, else a dot. */
  drawAreas() {
    const { model, shaded, totals, limits } = this;
    const level = this.levelOf(shaded);
    const axis = model.axes[shaded];
    const isOutlined = this.isOutlined(shaded) && model.shapes.level >= level;
    const paths = new Map();
    this.pen.lineWidth = 0.7;
    for (const [area, rings] of model.shapes?.rings ?? []) {
      const index = isOutlined ? axis.above[level][axis.spans[model.shapes.level][area]] : -1;
      const isArea = index >= 0 && this.isInView({ number: shaded, level, index });
      const path = this.outline((isArea && paths.get(index)) || new Path2D(), rings);
      if (isArea) paths.set(index, path);
      else this.fill(path, 'map-land', 'map-line');
    }
    if (!isOutlined) this.addDots(paths, axis, level);
    /* Outlines finer than the areas in view would be in the way. */
    const isMerged = isOutlined && model.shapes.level > level;
    for (const [index, path] of paths) {
      const shade = limits.length && totals[index] > 0 ? 'm' + this.classOf(totals[index]) : 'map-focus';
      const inside = this.unsure.has(index) ? 'hatch' : shade;
      this.area(index, path, inside, !isMerged ? 'map-line' : inside === 'hatch' ? 'map-focus' : shade);
    }
  }

  /* Dots grow with their totals, but for those of the worst grade; large ones are drawn first. */
  addDots(paths, axis, level) {
    const totals = this.totals.map((total, index) => (this.unsure.has(index) ? 0 : total));
    const largest = totals.reduce((most, total) => Math.max(most, total), 1);
    const [first, last] = axis.inside(this.focusOf(this.shaded), level);
    const order = Array.from({ length: last - first }, (_, i) => first + i).sort((a, b) => totals[b] - totals[a]);
    for (const index of order) {
      const at = this.point(this.shaded, level, index);
      if (!at || !this.isSeen(...at, 30)) continue;
      const size = this.limits.length ? Math.sqrt(Math.max(totals[index], 0) / largest) : 0;
      paths.set(index, this.dot(at, 2.5 + 14 * size));
    }
  }

  classOf(value) { return this.limits.filter((least) => value >= least).length; }

  /* The largest flows between areas as curves, and those within areas as rings. */
  drawFlows() {
    const { flows, view } = this;
    const kinds = [MAP_FLOWS, MAP_CIRCLES].map((most) => ({ room: Math.round(most * this.thick), drawn: [] }));
    this.missing = 0;
    for (const i of this.hasFlows ? this.wanted : []) {
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
    this.top?.show(view, flows, listed.map(({ i }) => i), listed === kinds[1].drawn);
    /* Small ones first, so that large ones lie on top. */
    for (const flow of [...kinds[1].drawn.reverse(), ...kinds[0].drawn.reverse()]) {
      this.drawFlow(flow, most[Number(flow.isWithin)]);
    }
  }

  drawFlow({ i, from, to, isWithin }, most) {
    const { flows, view } = this;
    const size = Math.sqrt(Math.abs(flows.value[i]) / most);
    const grade = this.explorer.gradeBy(this.explorer.shading, view, flows.value[i], flows.truth?.[i] ?? 0, most, view.areas(flows.row[i], flows.column[i])) ?? 2;
    const colour = this.colour(grade === this.model.grades.length ? 'line-strong' : 'r' + grade);
    const curve = { i, isWithin };
    if (isWithin) { this.line({ ...curve, path: this.dot(from, 2 + 9 * size), width: 2 * this.thick }, colour); return; }
    /* A curve fades towards its end. */
    const ink = this.pen.createLinearGradient(...from, ...to);
    ink.addColorStop(0, colour);
    ink.addColorStop(1, colour + '40');
    this.curve(curve, from, to, this.thick * (1 + 7 * size), ink);
  }

  drawPicked() {
    const at = this.picked && this.point(this.picked.number, this.picked.level, this.picked.index);
    if (!at) return;
    this.pen.lineWidth = 2.5;
    this.fill(this.dot(at, 6 / this.thick), 'page', 'ink');
  }

  explain() {
    const { view, picked, model } = this;
    const range = this.limits.map((least, i) => h('li', {}, h('span', { class: 'swatch m' + (i + 1) }),
      i + 1 < this.limits.length ? `from ${whole(least)}` : `${whole(least)} and more`));
    const name = picked && model.axes[picked.number].label(picked.level, picked.index);
    const { unit } = model.words;
    const title = picked ? `${unit} ${this.side === 0 ? 'from' : 'to'} ${name}:`
      : `${unit} ${this.direction === 'in' ? 'to' : 'from'} an area:`;
    const hatched = this.unsure.size ? [h('li', {}, h('span', { class: 'swatch r4' }), `grade ${model.grades.at(-1).name}: may be off by more than half`)] : [];
    this.legend.replaceChildren(...(range.length || hatched.length ? [h('li', {}, title), ...range, ...hatched] : []));
    const sure = model.isConfidential || !model.hasIntervals(view.levels) ? '' : '; those that may be zero are left out';
    const curves = this.curves?.length ?? 0;
    this.note.textContent = (this.hasFlows ? `The ${whole(curves)} largest of ${whole(this.wanted.length)} flows${sure}. ` : '')
      + (curves ? 'A curve is dark where it starts and fades where it ends; a ring is a flow within an area, on a scale of its own. ' : '')
      + 'Click an area to see only what is its own.'
      + (model.adviceOf(view.levels, view.edition) ? ` ${model.adviceOf(view.levels, view.edition)}` : '')
      + (this.missing ? ` ${whole(this.missing)} larger ones have an end without a place on the map.` : '');
    if (!picked) return;
    const sum = (values) => this.wanted.reduce((total, i) => total + (values?.[i] ?? 0), 0);
    const area = { level: picked.level, index: picked.index };
    this.explorer.say(...(picked.number === 0 ? [area, view.column] : [view.row, area]),
      { value: sum(this.flows.value), truth: sum(this.flows.truth) });
  }

  /* The area under a point, if it can be picked. */
  pickable(x, y) {
    const [number, level] = [this.side, this.levelOf(this.side)];
    /* Both ends are the same areas, or only one of them can be clicked. */
    if (this.shaded !== number && !(this.model.isShared && this.levelOf(this.shaded) === level)) return null;
    const index = this.areaAt(x, y);
    return index === null ? null : { number, level, index };
  }

  pointed(x, y) {
    const curve = this.curveAt(x, y);
    this.canvas.style.cursor = curve || this.pickable(x, y) ? 'pointer' : 'default';
    if (curve && this.pointedAt !== curve.i) this.sayCurve(curve);
    this.pointedAt = curve?.i;
  }

  clicked(x, y) {
    const curve = this.curveAt(x, y);
    if (curve && !curve.isWithin) this.sayCurve(curve);
    else this.pick(this.pickable(x, y));
  }

  sayCurve({ i }) {
    const { view, flows } = this;
    this.explorer.say({ level: view.rowLevel, index: flows.row[i] }, { level: view.columnLevel, index: flows.column[i] },
      { value: flows.value[i], truth: flows.truth?.[i] ?? 0 });
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
}
