/* A map on a canvas: areas as outlines or dots, curves and labels, to be moved, zoomed and clicked.

   A map of its own kind has `bounds`, `draw`, `clicked` and `pointed`. */

import { Camera } from './camera.mjs';
import { emptyBox, extend } from './shapes.mjs';
import { h } from './tools.mjs';

/* Room of a label: as many as this fits into the map are drawn. */
const LABEL_ROOM = 26000;
const STEP = 1.7;
const HATCH = 6;
/* Milliseconds after scrolling the page in which the wheel does not zoom the map. */
const SCROLLING = 400;

export class Picture {
  constructor() {
    this.camera = new Camera();
    const on = (act) => (event) => {
      const { left, top } = this.canvas.getBoundingClientRect();
      act([event.clientX - left, event.clientY - top], event);
    };
    const gone = (event) => { this.camera.release(event.pointerId); };
    this.canvas = h('canvas', {
      role: 'img',
      onpointerdown: on((at, event) => { this.camera.press(event.pointerId, at); this.canvas.setPointerCapture(event.pointerId); }),
      onpointermove: on((at, event) => this.drag(at, event)),
      onpointerup: on((at, event) => { if (this.camera.release(event.pointerId)) this.clicked(...at); }),
      onpointercancel: gone, onlostpointercapture: gone,
    });
    this.canvas.addEventListener('wheel', on((at, event) => this.wheel(at, event)), { passive: false });
    this.pen = this.canvas.getContext('2d');
    const button = (label, sign, factor) => h('button', {
      class: 'action', type: 'button', 'aria-label': label, onclick: () => { this.camera.scale(factor); this.redraw(); },
    }, sign);
    this.box = h('div', { class: 'map' }, this.canvas, h('div', { class: 'zooms' },
      button('Zoom in', '+', STEP), button('Zoom out', '−', 1 / STEP)));
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.redraw());
    addEventListener('scroll', () => { this.scrolled = performance.now(); }, { passive: true });
    new ResizeObserver(() => { if (this.box.clientWidth !== this.width) this.redraw(); }).observe(this.box);
  }

  drag(at, event) {
    /* A pointer that was released outside the page is not held. */
    if (!event.buttons) this.camera.held.delete(event.pointerId);
    const isChanged = this.camera.drag(event.pointerId, at);
    if (isChanged) this.later();
    else if (isChanged === null) this.pointed(...at);
  }

  wheel(at, event) {
    if (!event.ctrlKey && performance.now() - (this.scrolled ?? -SCROLLING) < SCROLLING) return;
    /* Lines of some wheels are pixels of others. */
    const by = event.deltaY * (event.deltaMode === 1 ? 30 : 1) * (event.ctrlKey ? 5 : 1);
    if (!this.camera.scale(Math.exp(-Math.max(-300, Math.min(300, by)) / 500), at)) return;
    event.preventDefault();
    this.later();
  }

  /* At most one drawing for each frame of the screen. */
  later() {
    this.waiting ??= requestAnimationFrame(() => { this.waiting = null; this.redraw(); });
  }

  redraw() {
    if (!this.box.isConnected) return;
    this.project(this.bounds());
    const style = getComputedStyle(document.documentElement);
    this.colour = (name) => style.getPropertyValue('--' + name).trim();
    this.density = Math.min(2, window.devicePixelRatio || 1);
    const { pen, canvas } = this;
    canvas.width = Math.round(this.width * this.density);
    canvas.height = Math.round(this.height * this.density);
    canvas.style.height = this.height + 'px';
    /* A finger moves what is closer; else it scrolls the page. */
    canvas.style.touchAction = this.camera.zoom > 1 ? 'none' : 'pan-y';
    pen.setTransform(this.density, 0, 0, this.density, 0, 0);
    pen.lineJoin = 'round';
    pen.fillStyle = this.colour('panel');
    pen.fillRect(0, 0, this.width, this.height);
    this.areas = new Map();
    this.curves = [];
    this.hatched = null;
    canvas.setAttribute('aria-label', this.draw(pen));
  }

  /* Fit a box of longitudes and latitudes into the drawing; a degree is shorter up north. */
  project(bounds) {
    const box = bounds[0] === Infinity ? [0, 0, 1, 1] : bounds;
    const squeeze = Math.max(0.05, Math.cos((box[1] + box[3]) / 2 * Math.PI / 180));
    const spanX = Math.max((box[2] - box[0]) * squeeze, 0.02);
    const spanY = Math.max(box[3] - box[1], 0.02);
    const width = Math.max(260, this.box.clientWidth || 900);
    /* As high as the screen has room below it, so that all of it is seen at first. */
    if (width !== this.width) this.room = Math.max(340, innerHeight - this.box.getBoundingClientRect().top - scrollY - 12);
    this.width = width;
    this.height = Math.round(Math.min(Math.max(this.width * spanY / spanX, this.width * 0.5), this.width < 600 ? 520 : 720, this.room));
    this.camera.size = [this.width, this.height];
    /* Of lines and dots: a small map has thin ones, and fewer. */
    this.thick = Math.min(1, Math.max(0.5, this.width / 800));
    const margin = this.margin * this.thick;
    const { zoom, shift } = this.camera;
    const scale = zoom * Math.min((this.width - 2 * margin) / spanX, (this.height - 2 * margin) / spanY);
    const middle = [(box[0] + box[2]) / 2, (box[1] + box[3]) / 2];
    const [left, top] = [this.width / 2 + shift[0], this.height / 2 + shift[1]];
    this.x = (lon) => left + (lon - middle[0]) * squeeze * scale;
    this.y = (lat) => top - (lat - middle[1]) * scale;
  }

  at(place) { return place ? [this.x(place[0]), this.y(place[1])] : null; }

  isSeen(x, y, margin = 0) {
    return x > -margin && y > -margin && x < this.width + margin && y < this.height + margin;
  }

  /* Draw an area that can be pointed at; by colour names, or hatched. */
  area(key, path, inside, border = 'map-line') {
    this.areas.set(key, path);
    this.fill(path, inside, border);
  }

  fill(path, inside, border) {
    const { pen } = this;
    pen.fillStyle = inside === 'hatch' ? this.hatch() : this.colour(inside);
    pen.strokeStyle = this.colour(border);
    pen.fill(path, 'evenodd');
    pen.stroke(path);
  }

  /* Hatching of numbers that may be off by more than half. */
  hatch() {
    if (this.hatched) return this.hatched;
    const tile = h('canvas', { width: HATCH, height: HATCH });
    const pen = tile.getContext('2d');
    pen.fillStyle = this.colour('map-focus');
    pen.fillRect(0, 0, HATCH, HATCH);
    pen.strokeStyle = this.colour('map-hatch');
    for (const start of [-HATCH, 0, HATCH]) {
      pen.moveTo(start, HATCH);
      pen.lineTo(start + HATCH, 0);
    }
    pen.stroke();
    this.hatched = this.pen.createPattern(tile, 'repeat');
    return this.hatched;
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
    return path;
  }

  /* A dot that stands for an area without an outline. */
  dot([x, y], radius) {
    const path = new Path2D();
    path.arc(x, y, this.thick * radius, 0, 7);
    return path;
  }

  /* Draw a curve that can be pointed at; it bends to the right of its way, so there and back are two. */
  curve(about, from, to, width, ink) {
    const path = new Path2D();
    path.moveTo(...from);
    path.quadraticCurveTo((from[0] + to[0]) / 2 - 0.18 * (to[1] - from[1]), (from[1] + to[1]) / 2 + 0.18 * (to[0] - from[0]), ...to);
    this.line({ ...about, path, width }, ink);
  }

  line(curve, ink) {
    const { pen } = this;
    pen.lineWidth = curve.width;
    pen.strokeStyle = ink;
    pen.stroke(curve.path);
    this.curves.push(curve);
  }

  /* Names, the first ones first, none over another; returns those that found room. */
  drawLabels(places) {
    const { pen } = this;
    pen.font = `600 12px ${this.colour('sans')}`;
    pen.textAlign = 'center';
    pen.textBaseline = 'middle';
    pen.lineWidth = 3.5;
    pen.strokeStyle = this.colour('page');
    pen.fillStyle = this.colour('ink');
    const taken = [];
    const names = [];
    for (const { name, at } of places) {
      if (names.length * LABEL_ROOM >= this.width * this.height) break;
      if (!at || !this.isSeen(...at)) continue;
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

  /* The area that is drawn under a point, or close to it; of dots the one on top. */
  areaAt(x, y) {
    const { pen } = this;
    const at = [x * this.density, y * this.density];
    const areas = [...this.areas];
    pen.lineWidth = 16;
    return (areas.findLast(([, path]) => pen.isPointInPath(path, ...at, 'evenodd'))
      ?? areas.findLast(([, path]) => pen.isPointInStroke(path, ...at)))?.[0] ?? null;
  }

  curveAt(x, y) {
    const { pen } = this;
    return this.curves.findLast(({ path, width }) => {
      pen.lineWidth = width + 6;
      return pen.isPointInStroke(path, x * this.density, y * this.density);
    });
  }
}

/* The box around places and rings. */
export function boxOf(places, rings) {
  const box = emptyBox();
  for (const place of places) if (place) extend(box, ...place);
  for (const ring of rings) { extend(box, ring.box[0], ring.box[1]); extend(box, ring.box[2], ring.box[3]); }
  return box;
}
