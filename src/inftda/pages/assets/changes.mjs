/* Maps of changes between two editions: areas and flows that rose or fell. */

import { Picture, boxOf } from './picture.mjs';
import { Shapes } from './shapes.mjs';
import { h, unpack } from './tools.mjs';

/* Of a line, in pixels. */
const WIDTH = 2;
const RADIUS = 7;

class ChangeMap extends Picture {
  /* `areas` are [number, kind, name, words], those with a verdict last; `lines` are [from, to, kind, words]. */
  constructor({ places, areas, lines, isOutlined }, shapes, says) {
    super();
    this.places = places;
    this.known = new Map(areas.map(([number, kind, name, words]) => [number, { kind, name, words }]));
    this.lines = lines;
    this.rings = isOutlined ? shapes.rings : new Map();
    this.says = says;
    this.margin = isOutlined ? 14 : 24;
  }

  bounds() { return boxOf(this.places, [...this.rings.values()].flat()); }

  draw(pen) {
    pen.lineWidth = 0.7;
    const others = this.places.map((_, number) => number).filter((number) => !this.known.has(number));
    for (const number of [...others, ...this.known.keys()]) {
      const at = this.at(this.places[number]);
      const rings = this.rings.get(number);
      if (!rings && !at) continue;
      this.area(number, rings ? this.outline(new Path2D(), rings) : this.dot(at, RADIUS), this.known.get(number)?.kind ?? 'same');
    }
    for (const [from, to, kind, words] of this.lines) {
      const ends = [this.at(this.places[from]), this.at(this.places[to])];
      if (ends.every(Boolean)) this.curve({ words }, ...ends, WIDTH, this.colour(kind));
    }
    const told = [...this.known].filter(([, { kind }]) => kind !== 'same').reverse();
    const labels = this.drawLabels(told.map(([number, { name }]) => ({ name, at: this.at(this.places[number]) })));
    return `Map of changes; the lists have the same numbers. Labelled: ${labels.join(', ') || 'nothing'}`;
  }

  pointed(x, y) {
    const words = this.curveAt(x, y)?.words ?? this.known.get(this.areaAt(x, y))?.words;
    if (words) this.says.textContent = words;
  }

  clicked(x, y) { this.pointed(x, y); }
}

async function start() {
  const root = document.getElementById('change-maps');
  const { header, numbers } = await unpack(document.getElementById('packed').textContent);
  const shapes = header.shapes && new Shapes(header.shapes, numbers('shapes'));
  for (const one of header.maps) {
    const says = h('p', { class: 'note', role: 'status', 'aria-live': 'polite' }, 'Point at an area or a line to see its numbers.');
    const map = new ChangeMap(one, shapes, says);
    root.append(h('figure', {}, h('figcaption', {}, one.title), map.box, says));
    map.redraw();
  }
  document.documentElement.dataset.ready = 'yes';
}

start();
