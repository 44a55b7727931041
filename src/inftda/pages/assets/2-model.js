/* The released table: axes with their areas, flows in typed arrays, sums on the fly. */

class Axis {
  constructor(entry, shared) {
    this.name = entry.name;
    this.title = entry.title;
    const levels = entry.levels ?? shared;
    this.levels = [{ name: 'all', codes: ['all'], names: [entry.whole] }, ...levels];
    this.depth = levels.length;
    this.labels = [];
    /* spans[level][i] .. spans[level][i + 1] are the finest areas inside area i of the level. */
    this.spans = new Array(this.depth + 1);
    const n = this.size(this.depth);
    this.spans[this.depth] = Int32Array.from({ length: n + 1 }, (_, i) => i);
    for (let level = this.depth - 1; level >= 0; level -= 1) {
      const below = this.spans[level + 1];
      const starts = running([0, ...this.levels[level + 1].children]);
      this.spans[level] = Int32Array.from(starts, (start) => below[start]);
    }
    /* above[level][leaf] is the area of the level that holds the finest area. */
    this.above = this.spans.map((span) => {
      const above = new Int32Array(n);
      for (let i = 0; i + 1 < span.length; i += 1) above.fill(i, span[i], span[i + 1]);
      return above;
    });
  }

  size(level) { return this.levels[level].codes.length; }

  code(level, index) { return this.levels[level].codes[index]; }

  nameOf(level, index) {
    const { names, codes } = this.levels[level];
    return (names && names[index]) || codes[index];
  }

  /* The name, with the area around it where others of the level are called the same. */
  label(level, index) {
    this.labels[level] ??= this.tellApart(level);
    return this.labels[level][index];
  }

  tellApart(level) {
    const { codes } = this.levels[level];
    const names = codes.map((_, i) => this.nameOf(level, i));
    const again = repeats(names);
    if (!again.size) return names;
    const around = (name, i) => (level > 1 ? `${name}, ${this.nameOf(level - 1, this.parent(level, i))}` : name);
    const labels = names.map((name, i) => (again.has(name) ? around(name, i) : name));
    const still = repeats(labels);
    return labels.map((label, i) => (still.has(label) ? `${label} (${codes[i]})` : label));
  }

  parent(level, index) { return this.above[level - 1][this.spans[level][index]]; }

  /* The area and those it lies in, coarse to fine. */
  path(level, index) {
    const leaf = this.spans[level][index];
    return Array.from({ length: level + 1 }, (_, at) => ({ level: at, index: this.above[at][leaf] }));
  }

  /* Areas of `level` inside a focus: [first, one after the last]. */
  inside(focus, level) {
    const first = this.above[level][this.spans[focus.level][focus.index]];
    const last = this.above[level][this.spans[focus.level][focus.index + 1] - 1];
    return [first, last + 1];
  }

  /* The next level at which a focus has more than one area; the finest if there is none. */
  nextLevel(focus) {
    for (let level = focus.level + 1; level <= this.depth; level += 1) {
      const [first, last] = this.inside(focus, level);
      if (last - first > 1) return level;
    }
    return this.depth;
  }

  search(text, limit) {
    const wanted = folded(text.trim());
    if (!wanted) return [];
    this.folded ??= this.levels.map(({ names, codes }) =>
      codes.map((code, i) => folded(`\n${names?.[i] ?? ''}\n${code}\n`)));
    /* Those that are called so, those that begin so, and those that have it somewhere. */
    const kinds = [`\n${wanted}\n`, `\n${wanted}`, wanted];
    const found = kinds.map(() => []);
    for (let level = 1; level <= this.depth; level += 1) {
      this.folded[level].forEach((text, index) => {
        const kind = kinds.findIndex((one) => text.includes(one));
        if (kind >= 0) found[kind].push({ level, index });
      });
    }
    return found.flat().slice(0, limit);
  }
}

/* Texts that are there more than once. */
function repeats(texts) {
  const seen = new Set();
  return new Set(texts.filter((text) => seen.has(text) || !seen.add(text)));
}

class Model {
  constructor(header, numbers) {
    this.header = header;
    this.numbers = numbers;
    const entries = [...header.axes];
    this.isFlat = entries.length === 1;
    /* A table with one axis is one with a single column. */
    if (this.isFlat) entries.push({ name: '', title: '', whole: '', levels: [] });
    this.known = entries.map((entry) => new Axis(entry, header.axes[0].levels));
    this.across = new Set(header.across);
    this.isConfidential = header.confidential;
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

  /* What belongs to each axis as it is laid out, in the order of the header. */
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

  /* Look at what was published, or at what was estimated. */
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

  /* What the true number of a cell lies between, where that is known of this cell; else null. */
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

  /* What was published in a cell, whichever table is looked at. */
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

  /* Which flows a filter on further axes keeps: null if all, else 1 for each that is kept. */
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

  /* Published totals across the tree, by cells of these levels; null for all other numbers. */
  totalsAt(levels) {
    const name = `totals-${this.key(levels)}`;
    if (this.isEstimated || !(name in this.header.arrays)) return null;
    if (!this.intervals.has(name)) this.intervals.set(name, this.numbers(name));
    return this.intervals.get(name);
  }

  /* The number of a cell whose flows add up to a sum: the published total where it is one. */
  total(levels, areas, sum) { return this.totalsAt(levels)?.[this.numberOf(levels, areas)] ?? sum; }

  /* How much of a total is in flows too small to be listed; 0 if that may be noise, as in Python. */
  unlisted(levels, value, areas) {
    const known = this.totalsAt(levels) && this.interval('intervals', levels, areas);
    const missing = known ? value - this.publishedAt(levels, areas) : 0;
    return known && 2 * missing > known.high - known.low ? missing : 0;
  }

  /* Totals of all areas of one level of an axis, and the true ones on the confidential page. */
  totals(number, level) {
    const levels = this.axes.map((_, i) => (i === number ? level : 0));
    const axis = this.axes[number];
    const above = axis.above[level];
    const leaves = this.leaves[number];
    const sum = (values) => {
      const out = new Float64Array(axis.size(level));
      for (let i = 0; i < leaves.length; i += 1) out[above[leaves[i]]] += values[i];
      return out;
    };
    return { value: this.totalsAt(levels) ?? sum(this.value), truth: this.truth && sum(this.truth) };
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
    const truth = new Map();
    for (let i = 0; i < flows.n; i += 1) truth.set(number(flows.row[i], flows.column[i]), flows.truth?.[i] ?? 0);
    for (let row = rows[0]; row < rows[1]; row += 1) {
      for (let column = columns[0]; column < columns[1]; column += 1) {
        const at = number(row, column);
        if (!totals[at] && !truth.get(at)) continue;
        out.row[out.n] = row;
        out.column[out.n] = column;
        out.value[out.n] = totals[at];
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

  /* 1 (trust it) to 4 (do not): the 95 % error relative to the number. */
  grade(levels, value, areas) {
    const error = this.error(levels, value, areas);
    return error && gradeOf(value === 0 ? Infinity : error.p95 / Math.abs(value));
  }

  /* Is a number known to be so uncertain that it may be zero? */
  mayBeZero(levels, value, areas) {
    return !this.isConfidential && this.grade(levels, value, areas) === GRADES.length;
  }

  /* Are numbers at these levels known to lie between two ends, cell by cell? */
  hasIntervals(levels) {
    const names = this.isEstimated ? ['intervals', 'estimated-intervals'] : ['intervals'];
    return names.some((name) => `${name}-${this.key(levels)}.cells` in this.header.arrays);
  }

  /* Totals of areas that were measured separately. */
  isMeasured(levels) { return `totals-${this.key(levels)}` in this.header.arrays; }

  /* Is a number at these levels a sum across those at which noise was added? */
  isAcross(levels) { return this.across.has(this.key(levels)); }

  /* From what size on numbers of a level can be used, if not all can be, and why they have no
     intervals, if they have none; else empty. */
  adviceOf(levels) {
    const lacks = !this.isConfidential && !this.hasIntervals(levels);
    return [!this.isEstimated && this.header.uses[this.key(levels)], lacks && this.header.unknown,
      lacks && this.isAcross(levels) && 'Errors add up in these sums.'].filter(Boolean).join(' ');
  }
}

/* The rule of Python's `grades`. */
const GRADES = [
  { name: 'A', upTo: 0.1, label: 'within ±10 %' },
  { name: 'B', upTo: 0.25, label: '±10 to 25 %' },
  { name: 'C', upTo: 0.5, label: '±25 to 50 %' },
  { name: 'D', upTo: Infinity, label: 'beyond ±50 %: may be zero' },
];

const gradeOf = (relative) => 1 + GRADES.findIndex(({ upTo }) => relative <= upTo);
