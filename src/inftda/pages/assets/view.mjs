/* A view: an area on each axis, the level it is shown by, and the mode. The address holds it. */

import { whole } from './tools.mjs';

export class View {
  constructor(model, { row, column, rowLevel, columnLevel, mode, further }) {
    const [rows, columns] = model.axes;
    this.model = model;
    this.pair = model.pair;
    this.row = row ?? { level: 0, index: 0 };
    this.column = column ?? { level: 0, index: 0 };
    this.rowLevel = rowLevel ?? rows.nextLevel(this.row);
    this.columnLevel = columnLevel ?? columns.nextLevel(this.column);
    this.mode = mode ?? 'matrix';
    this.further = further ?? model.axes.slice(2).map(({ start }) => start);
  }

  /* The first view: the finest level that can be used; of other axes than the usual ones a coarse one. */
  static first(model, mode) {
    const [rowLevel, columnLevel] = model.isUsual ? model.header.opens : [];
    return new View(model, { mode, rowLevel, columnLevel });
  }

  /* The same view but for some changes; a new focus brings its own level to show. */
  with(changes) {
    const kept = { row: this.row, column: this.column, mode: this.mode, further: this.further };
    if (!('row' in changes)) kept.rowLevel = this.rowLevel;
    if (!('column' in changes)) kept.columnLevel = this.columnLevel;
    return new View(this.model, { ...kept, ...changes });
  }

  get levels() { return [this.rowLevel, this.columnLevel, ...this.further.map(({ level }) => level)]; }

  /* Areas of a pair on every axis: its own, and those that additional dimensions are filtered by. */
  areas(row, column) { return [row, column, ...this.further.map(({ index }) => index)]; }

  /* Levels of two areas, and of those that additional dimensions are filtered by. */
  levelsAt(row, column) { return [row, column, ...this.further].map(({ level }) => level); }

  /* The number between two areas whose flows add up to a sum; index -1 stands for several areas. */
  total(row, column, sum) {
    if (row.index < 0 || column.index < 0) return sum;
    return this.model.total(this.levelsAt(row, column), this.areas(row.index, column.index), sum);
  }

  /* The interval of the number between two areas, in words. */
  worth(row, column, value) {
    const { model } = this;
    if (row.index < 0 || column.index < 0) return 'A sum of several areas.';
    const levels = this.levelsAt(row, column);
    const areas = this.areas(row.index, column.index);
    if (value === 0 && !model.isMeasured(levels)) return 'Nothing was published here; the true number may be small and not zero.';
    const error = model.error(levels, value, areas);
    if (!error) return 'This page has no interval for it.';
    if (error.p95 === 0 && levels.every((level, i) => !level || model.axes[i].isEdition)) return 'The overall total is exact.';
    const { units } = model.words;
    const ends = `between ${whole(error.low)} and ${whole(error.high)}`;
    const unlisted = model.unlisted(levels, value, areas);
    const lack = unlisted ? ` ${whole(unlisted)} of these are in flows too small to be listed.` : '';
    if (model.isMeasured(levels)) return `Measured separately: the true number of ${units} lies ${ends} (95 %, for an area chosen beforehand).${lack}`;
    return `${model.isEstimated ? 'Estimated. ' : ''}The true number of ${units} lies ${ends}: such intervals hold for 95 % of the published numbers of similar size${model.isSummed(levels) ? ', of sums on most tables' : ''}.`;
  }

  /* Number of the edition that is looked at: 0 if there are none, null if all are laid out. */
  get edition() {
    const at = this.model.axes.findIndex(({ isEdition }) => isEdition);
    if (at < 0) return 0;
    const focus = [this.row, this.column, ...this.further][at];
    return focus.level ? focus.index : null;
  }

  get isWhole() { return this.row.level === 0 && this.column.level === 0; }

  /* One level up: the end that is deeper in, or both. */
  out() {
    const deepest = Math.max(this.row.level, this.column.level);
    const size = (axis, { level, index }) => axis.spans[level][index + 1] - axis.spans[level][index];
    const parent = (axis, { level, index }) => ({ level: level - 1, index: axis.parent(level, index) });
    /* An only child is its parent by another name: such steps are taken at once. */
    const up = (axis, focus) => {
      let at = parent(axis, focus);
      while (at.level > 0 && size(axis, at) === size(axis, focus)) at = parent(axis, at);
      while (at.level > 0 && size(axis, parent(axis, at)) === size(axis, at)) at = parent(axis, at);
      return at;
    };
    const changes = {};
    if (this.row.level === deepest) changes.row = up(this.model.axes[0], this.row);
    if (this.column.level === deepest) changes.column = up(this.model.axes[1], this.column);
    return this.with(changes);
  }

  get address() {
    const pair = this.pair.join() === '0,1' ? [] : [this.pair.join('-')];
    const end = (focus, level) => [focus.level, focus.index, level].join('.');
    const isStart = this.further.every(({ level, index }, i) => {
      const { start } = this.model.axes[i + 2];
      return level === start.level && index === start.index;
    });
    const filters = isStart ? [] : this.further;
    return '#/' + [...pair, end(this.row, this.rowLevel), end(this.column, this.columnLevel), this.mode,
      ...filters.map(({ level, index }) => [level, index].join('.'))].join('/');
  }

  get fileName() {
    const place = this.address.slice(2).split('/').filter((part) => part !== this.mode).join('-');
    return `${this.model.isEstimated ? 'estimates' : 'flows'}-${place}`;
  }

  /* The axes that an address lays out, and the rest of it. */
  static pairAt(model, address) {
    const match = /^#\/(\d+)-(\d+)\/(.*)$/.exec(address);
    if (!match) return { pair: [0, 1], rest: address };
    const pair = match.slice(1, 3).map(Number);
    const isThere = pair[0] !== pair[1] && pair.every((number) => number < model.known.length);
    return isThere ? { pair, rest: '#/' + match[3] } : null;
  }

  /* The view that an address holds, for the axes that are laid out. */
  static at(model, address, modes) {
    const match = /^#\/(\d+)\.(\d+)\.(\d+)\/(\d+)\.(\d+)\.(\d+)\/(\w+)((?:\/\d+\.\d+)*)$/.exec(address);
    if (!match) return null;
    const [a, b, c, d, e, f] = match.slice(1, 7).map(Number);
    const fits = (axis, level, index, shown) =>
      level <= axis.depth && index < axis.size(level) && shown >= Math.max(level, axis.start.level) && shown <= axis.depth;
    if (!fits(model.axes[0], a, b, c) || !fits(model.axes[1], d, e, f)) return null;
    if (!modes.includes(match[7])) return null;
    const filters = match[8].split('/').slice(1).map((text) => text.split('.').map(Number));
    const isFilter = ([level, index], i) => fits(model.axes[i + 2], level, index, level);
    if (filters.length && (filters.length !== model.axes.length - 2 || !filters.every(isFilter))) return null;
    return new View(model, {
      further: filters.length ? filters.map(([level, index]) => ({ level, index })) : undefined,
      row: { level: a, index: b }, column: { level: d, index: e }, rowLevel: c, columnLevel: f,
      mode: match[7],
    });
  }
}
