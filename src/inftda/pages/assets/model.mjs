/* The released table: axes with their areas, flows in typed arrays, sums on the fly. */

import { Axis } from './axis.mjs';
import { Shapes } from './shapes.mjs';
import { running } from './tools.mjs';

export class Model {
  constructor(header, numbers) {
    this.header = header;
    this.numbers = numbers;
    const entries = [...header.axes];
    this.isFlat = entries.length === 1;
    /* A table with one axis is one with a single column. */
    if (this.isFlat) entries.push({ name: '', title: '', whole: '', levels: [] });
    this.known = entries.map((entry, number) => new Axis(entry, header.axes[0].levels, number === header.editions));
    this.summed = new Set(header.summed);
    this.isConfidential = header.confidential;
    this.grades = header.grades;
    this.intervals = new Map();
    this.read = { published: this.readFlows('flows') };
    if ('estimated.cells' in header.arrays) this.read.estimated = this.readFlows('estimated');
    this.using = 'published';
    this.arrange([0, 1]);
    /* places[axis][level][area] is a longitude and a latitude, or null. */
    this.places = header.places?.some(Boolean) ? header.places : null;
    this.shapes = header.shapes ? new Shapes(header.shapes, numbers('shapes')) : null;
  }

  /* Lay out two axes as rows and columns; the others stand behind them in their order. */
  arrange(pair) {
    if (this.pair?.join() === pair.join()) return;
    this.pair = pair;
    this.order = [...pair, ...this.known.map((_, number) => number).filter((number) => !pair.includes(number))];
    this.axes = this.order.map((number) => this.known[number]);
    this.isUsual = pair.join() === '0,1';
    this.isShared = this.header.shared && Math.max(...pair) === 1;
    const [row, column] = this.axes.map(({ name }) => name);
    this.words = this.isUsual ? this.header.words
      : { ...this.header.words, row, column, from: `${row}:`, to: `· ${column}:` };
    this.sets = Object.fromEntries(Object.entries(this.read).map(([name, set]) => [name, this.inRows(set)]));
    this.sumsKey = null;
    this.use(this.using);
  }

  /* Values of the axes as they are laid out, in the order of the header. */
  inHeader(items) {
    const out = new Array(this.header.axes.length);
    this.order.forEach((number, i) => { if (number < out.length) out[number] = items[i]; });
    return out;
  }

  /* Levels on each axis as the header names them. */
  key(levels) { return this.inHeader(levels).join(); }

  /* One table of flows: finest areas on each axis. */
  readFlows(name) {
    const cells = running(this.numbers(`${name}.cells`));
    const sizes = this.known.map((axis) => axis.size(axis.depth));
    const leaves = sizes.map(() => new Int32Array(cells.length));
    for (let i = 0; i < cells.length; i += 1) {
      let rest = cells[i];
      for (let axis = sizes.length - 1; axis >= 0; axis -= 1) {
        leaves[axis][i] = rest % sizes[axis];
        rest = Math.floor(rest / sizes[axis]);
      }
    }
    const truth = this.isConfidential ? this.numbers(`${name}.truth`) : null;
    return { leaves, value: this.numbers(`${name}.value`), truth };
  }

  /* The flows in order of rows: those of row i are rowStart[i] .. rowStart[i + 1]. */
  inRows({ leaves, value, truth }) {
    const rows = leaves[this.order[0]];
    const rowStart = new Int32Array(this.axes[0].size(this.axes[0].depth) + 1);
    for (const row of rows) rowStart[row + 1] += 1;
    running(rowStart);
    const arranged = this.order.map((number) => leaves[number]);
    if (this.order[0] === 0) return { leaves: arranged, value, truth, rowStart };
    const next = rowStart.slice();
    const to = Int32Array.from(rows, (row) => next[row]++);
    const moved = (numbers) => {
      const out = new numbers.constructor(numbers.length);
      for (let i = 0; i < to.length; i += 1) out[to[i]] = numbers[i];
      return out;
    };
    return { leaves: arranged.map(moved), value: moved(value), truth: truth && moved(truth), rowStart };
  }

  /* Switch between published and estimated numbers. */
  use(name) {
    this.using = name;
    Object.assign(this, this.sets[name]);
    this.keptKey = null;
  }

  get isEstimated() { return this.using === 'estimated'; }

  /* Number of a cell, as the page numbers them: the last axis of the header runs fastest. */
  numberOf(levels, areas) {
    const [level, area] = [this.inHeader(levels), this.inHeader(areas)];
    return level.reduce((number, at, i) => number * this.known[i].size(at) + area[i], 0);
  }

  /* The interval of the true number of a cell; null if it has none. */
  interval(name, levels, areas) {
    const table = `${name}-${this.key(levels)}`;
    if (!(`${table}.cells` in this.header.arrays)) return null;
    if (!this.intervals.has(table)) {
      const cells = running(this.numbers(`${table}.cells`));
      this.intervals.set(table, {
        place: new Map(Array.from(cells, (cell, i) => [cell, i])),
        low: this.numbers(`${table}.low`), width: this.numbers(`${table}.width`),
      });
    }
    const { place, low, width } = this.intervals.get(table);
    const at = place.get(this.numberOf(levels, areas));
    return at === undefined ? null : { low: low[at], high: low[at] + width[at] };
  }

  /* The published number of a cell, whichever table is in view. */
  publishedAt(levels, areas) {
    const key = this.key(levels);
    if (this.sumsKey !== key) {
      const { leaves, value } = this.sets.published;
      const above = levels.map((level, i) => this.axes[i].above[level]);
      this.sumsNow = new Map();
      this.sumsKey = key;
      for (let i = 0; i < value.length; i += 1) {
        const number = this.numberOf(levels, above.map((areaOf, axis) => areaOf[leaves[axis][i]]));
        this.sumsNow.set(number, (this.sumsNow.get(number) ?? 0) + value[i]);
      }
    }
    return this.sumsNow.get(this.numberOf(levels, areas)) ?? 0;
  }

  /* Which flows a filter on additional dimensions keeps: null if all, else 1 for each that is kept. */
  kept(filters) {
    const used = filters.map((focus, i) => ({ focus, i })).filter(({ focus }) => focus.level > 0);
    if (!used.length) return null;
    const key = JSON.stringify(filters);
    if (this.keptKey === key) return this.keptNow;
    const kept = new Uint8Array(this.value.length).fill(1);
    for (const { focus, i } of used) {
      const [first, last] = this.axes[i + 2].inside(focus, this.axes[i + 2].depth);
      const leaf = this.leaves[i + 2];
      for (let at = 0; at < kept.length; at += 1) if (leaf[at] < first || leaf[at] >= last) kept[at] = 0;
    }
    this.keptKey = key;
    this.keptNow = kept;
    return kept;
  }

  /* Published marginal totals, by cells of these levels; null for all other numbers. */
  totalsAt(levels) {
    const name = `totals-${this.key(levels)}`;
    if (this.isEstimated || !(`${name}.cells` in this.header.arrays)) return null;
    if (!this.intervals.has(name)) {
      const [cells, values] = [running(this.numbers(`${name}.cells`)), this.numbers(`${name}.value`)];
      this.intervals.set(name, new Map(Array.from(cells, (cell, i) => [cell, values[i]])));
    }
    return this.intervals.get(name);
  }

  /* The number of a cell whose flows add up to a sum: the published total where it is one. */
  total(levels, areas, sum) { return this.totalsAt(levels)?.get(this.numberOf(levels, areas)) ?? sum; }

  /* The part of a total in flows too small to be listed; 0 if that part may be noise. */
  unlisted(levels, value, areas) {
    const known = this.totalsAt(levels) && this.interval('intervals', levels, areas);
    const missing = known ? value - this.publishedAt(levels, areas) : 0;
    return known && missing > this.header.unlisted * (known.high - known.low) ? missing : 0;
  }

  /* Totals of all areas of one level of an axis, and the true ones on the confidential page; of a
     series those of one edition. `at` gives the levels, and the areas of each total. */
  totals(number, level, edition = this.axes.find(({ isEdition }) => isEdition)?.start.index) {
    const one = this.axes.findIndex(({ isEdition }) => isEdition);
    const of = (own, ofEdition) => this.axes.map((_, i) => (i === number ? own : i === one ? ofEdition : 0));
    const at = { levels: of(level, 1), areas: (index) => of(index, edition) };
    const axis = this.axes[number];
    const above = axis.above[level];
    const leaves = this.leaves[number];
    const sum = (values) => {
      const out = new Float64Array(axis.size(level));
      for (let i = 0; i < leaves.length; i += 1) {
        if (one < 0 || one === number || this.leaves[one][i] === edition) out[above[leaves[i]]] += values[i];
      }
      return out;
    };
    const value = sum(this.value).map((sum_, index) => this.total(at.levels, at.areas(index), sum_));
    return { at, value, truth: this.truth && sum(this.truth) };
  }

  /* All flows of a view: row area, column area, value (and truth), in order of rows. */
  flows(view) {
    const [rowAxis, columnAxis] = this.axes;
    const [firstRow, lastRow] = rowAxis.inside(view.row, view.rowLevel);
    const [firstColumn, lastColumn] = columnAxis.inside(view.column, view.columnLevel);
    const [low, high] = columnAxis.inside(view.column, columnAxis.depth);
    const above = columnAxis.above[view.columnLevel];
    const span = rowAxis.spans[view.rowLevel];
    const room = this.rowStart[span[lastRow]] - this.rowStart[span[firstRow]];
    const out = {
      row: new Int32Array(room), column: new Int32Array(room), value: new Float64Array(room),
      truth: this.truth ? new Float64Array(room) : null, n: 0,
    };
    const kept = this.kept(view.further);
    const width = lastColumn - firstColumn;
    const sum = new Float64Array(width);
    const trueSum = new Float64Array(width);
    const isSeen = new Uint8Array(width);
    const seen = new Int32Array(width);
    for (let row = firstRow; row < lastRow; row += 1) {
      let n = 0;
      for (let i = this.rowStart[span[row]]; i < this.rowStart[span[row + 1]]; i += 1) {
        const leaf = this.leaves[1][i];
        if (leaf < low || leaf >= high || (kept && !kept[i])) continue;
        const at = above[leaf] - firstColumn;
        if (!isSeen[at]) { isSeen[at] = 1; seen[n++] = at; }
        sum[at] += this.value[i];
        if (this.truth) trueSum[at] += this.truth[i];
      }
      for (let k = 0; k < n; k += 1) {
        const at = seen[k];
        out.row[out.n] = row;
        out.column[out.n] = at + firstColumn;
        out.value[out.n] = sum[at];
        if (this.truth) out.truth[out.n] = trueSum[at];
        out.n += 1;
        sum[at] = 0; trueSum[at] = 0; isSeen[at] = 0;
      }
    }
    const totals = this.totalsAt(view.levels);
    return totals ? this.withTotals(view, out, totals) : out;
  }

  /* The flows of a view with totals in place of sums, also where nothing is listed. */
  withTotals(view, flows, totals) {
    const rows = this.axes[0].inside(view.row, view.rowLevel);
    const columns = this.axes[1].inside(view.column, view.columnLevel);
    const room = (rows[1] - rows[0]) * (columns[1] - columns[0]);
    const out = {
      row: new Int32Array(room), column: new Int32Array(room), value: new Float64Array(room),
      truth: flows.truth && new Float64Array(room), n: 0,
    };
    const number = (row, column) => this.numberOf(view.levels, view.areas(row, column));
    const [listed, truth] = [new Map(), new Map()];
    for (let i = 0; i < flows.n; i += 1) {
      listed.set(number(flows.row[i], flows.column[i]), flows.value[i]);
      truth.set(number(flows.row[i], flows.column[i]), flows.truth?.[i] ?? 0);
    }
    for (let row = rows[0]; row < rows[1]; row += 1) {
      for (let column = columns[0]; column < columns[1]; column += 1) {
        const at = number(row, column);
        const value = totals.get(at) ?? listed.get(at) ?? 0;
        if (!value && !truth.get(at)) continue;
        out.row[out.n] = row;
        out.column[out.n] = column;
        out.value[out.n] = value;
        if (out.truth) out.truth[out.n] = truth.get(at) ?? 0;
        out.n += 1;
      }
    }
    return out;
  }

  /* What the true number lies between (95 %), the number included, and how far off the number may
     be; null if unknown. Areas are one for each axis. */
  error(levels, value, areas) {
    const own = this.isEstimated ? this.interval('estimated-intervals', levels, areas) : null;
    const known = own ?? this.interval('intervals', levels, areas);
    if (!known) return null;
    const [low, high] = [Math.min(known.low, value), Math.max(known.high, value)];
    return { low, high, p95: Math.max(value - low, high - value) };
  }

  /* Grade from 1 (most reliable) to 4: the 95 % error relative to the number. */
  grade(levels, value, areas) {
    const error = this.error(levels, value, areas);
    return error && this.gradeOf(value === 0 ? Infinity : error.p95 / Math.abs(value));
  }

  /* The grade of an error relative to its number. */
  gradeOf(relative) {
    const at = this.grades.findIndex(({ upTo }) => upTo !== null && relative <= upTo);
    return at < 0 ? this.grades.length : at + 1;
  }

  /* May the true number be zero, by the interval of a number? */
  mayBeZero(levels, value, areas) {
    return !this.isConfidential && this.error(levels, value, areas)?.low === 0;
  }

  /* Do numbers at these levels have intervals, cell by cell? */
  hasIntervals(levels) {
    const names = this.isEstimated ? ['intervals', 'estimated-intervals'] : ['intervals'];
    return names.some((name) => `${name}-${this.key(levels)}.cells` in this.header.arrays);
  }

  /* Totals of areas that were measured separately. */
  isMeasured(levels) { return `totals-${this.key(levels)}.cells` in this.header.arrays; }

  /* Is a number at these levels a sum that is no level of the tree? */
  isSummed(levels) { return this.summed.has(this.key(levels)); }

  /* The smallest usable count of a level, unless all numbers can be used, and why they have no
     intervals, if they have none; else empty. Of a series for one edition, or for all of them. */
  adviceOf(levels, edition) {
    const lacks = !this.isConfidential && !this.hasIntervals(levels);
    const said = (texts = ['']) => {
      if (edition !== null) return texts[edition];
      const isOne = texts.every((text) => text === texts[0]);
      const { codes } = this.known[this.header.editions].levels[1];
      return isOne ? texts[0] : texts.map((text, i) => text && `${codes[i]}: ${text}`).filter(Boolean).join(' ');
    };
    return [!this.isEstimated && said(this.header.uses[this.key(levels)]), lacks && said(this.header.unknown),
      lacks && this.isSummed(levels) && 'Errors add up in these sums.'].filter(Boolean).join(' ');
  }
}
